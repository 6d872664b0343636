// What all kernels check of their tensors, and typed pointers into them.
#pragma once

#include <cstdint>
#include <string_view>

#include <ATen/core/Tensor.h>

#include "base/error.h"
#include "kernels/cpu/bf16.h"

namespace tandem::kernels {

inline void check_defined(const at::Tensor& x, std::string_view name) {
  TANDEM_CHECK(x.defined(), "{} is undefined", name);
}

/// A float32 or bfloat16 tensor on the CPU.
inline void check_storage(const at::Tensor& x, std::string_view name) {
  check_defined(x, name);
  TANDEM_CHECK(x.scalar_type() == at::kFloat || x.scalar_type() == at::kBFloat16,
               "{} is {}, not float32 or bfloat16",
               name,
               at::toString(x.scalar_type()));
  TANDEM_CHECK(x.is_cpu(), "{} is not on the CPU", name);
}

inline void check_type(const at::Tensor& x, at::ScalarType type, std::string_view name) {
  check_defined(x, name);
  TANDEM_CHECK(x.scalar_type() == type,
               "{} is {}, not {}",
               name,
               at::toString(x.scalar_type()),
               at::toString(type));
}

/// Rows of elements side by side; the rows themselves may have any distance.
inline void check_rows(const at::Tensor& x, std::string_view name) {
  TANDEM_CHECK(x.dim() == 2, "{} has {} dimensions, not 2", name, x.dim());
  TANDEM_CHECK(x.stride(1) == 1 || x.size(1) <= 1, "{} has rows that are not contiguous", name);
}

inline void check_contiguous(const at::Tensor& x, std::string_view name) {
  TANDEM_CHECK(x.is_contiguous(), "{} is not contiguous", name);
}

/// The tensor's elements as the kernels see them: float, or Bf16 for bfloat16.
template <class T>
T* pointer(const at::Tensor& x) {
  return x.defined() ? static_cast<T*>(x.data_ptr()) : nullptr;
}

/// `f(T{})` with the storage type T of `x`: float or Bf16.
template <class F>
decltype(auto) with_storage(const at::Tensor& x, F&& f) {
  return x.scalar_type() == at::kFloat ? f(float{}) : f(Bf16{});
}

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace tandem::kernels
