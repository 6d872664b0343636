// Working memory of the kernels: one buffer a thread, kept from call to call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tandem::kernels {

/// At least `size` floats, 64-byte aligned, with undefined contents. Good until the same thread's
/// next call.
inline float* thread_scratch(std::int64_t size) {
  constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, kAlignment); }
  };
  thread_local std::unique_ptr<float[], Free> buffer;
  thread_local std::int64_t capacity = 0;
  if (capacity < size) {
    buffer.reset();
    capacity = 0;
    const auto bytes = static_cast<std::size_t>(size) * sizeof(float);
    buffer.reset(static_cast<float*>(::operator new[](bytes, kAlignment)));
    capacity = size;
  }
  return buffer.get();
}

}  // namespace tandem::kernels
