#include "kernels/elementwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/autograd.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"
#include "kernels/row_ranges.h"

namespace tandem::kernels {
namespace {

// Adds the rows of `dy` to the rows `ids` of `grad`, in order; split over columns.
void scatter_add(const at::Tensor& ids, const at::Tensor& dy, const at::Tensor& grad) {
  constexpr std::int64_t kColumns = 128;
  const std::int64_t width = grad.size(1);
  const auto* id = ids.const_data_ptr<std::int32_t>();
  const auto* from = dy.const_data_ptr<float>();
  auto* to = grad.data_ptr<float>();
  compute_pool().parallel_for(ceil_div(width, kColumns), [&](std::int64_t task) {
    const std::int64_t end = std::min(width, (task + 1) * kColumns);
    for (std::int64_t r = 0; r < ids.numel(); ++r) {
      for (std::int64_t j = task * kColumns; j < end; ++j) {
        to[id[r] * width + j] += from[r * width + j];
      }
    }
  });
}

// The activation of x, or with `dy` the gradient of x.
at::Tensor gated(const at::Tensor& x, const at::Tensor& dy) {
  const std::int64_t rows = x.size(0);
  const std::int64_t width = x.size(1) / 2;
  const bool backward = dy.defined();
  const std::int64_t y_width = backward ? 2 * width : width;
  const auto y = at::empty({rows, y_width}, x.options());
  for_row_ranges(rows, x.size(1), [&](std::int64_t first, std::int64_t count) {
    with_storage(x, [&](auto type) {
      using T = decltype(type);
      const GatedSiluArgs<T> args = {pointer<const T>(x) + first * 2 * width,
                                     backward ? pointer<const T>(dy) + first * width : nullptr,
                                     pointer<T>(y) + first * y_width,
                                     count,
                                     width};
      const ElementwiseTable& kernels = table().elementwise;
      if constexpr (std::is_same_v<T, float>) {
        (backward ? kernels.gated_silu_backward_f32 : kernels.gated_silu_f32)(args);
      } else {
        (backward ? kernels.gated_silu_backward_bf16 : kernels.gated_silu_bf16)(args);
      }
    });
  });
  return y;
}

}  // namespace

at::Tensor embedding(const at::Tensor& ids, const Weight& weight) {
  check_type(ids, at::kInt, "embedding: ids");
  check_contiguous(ids, "embedding: ids");
  check_storage(weight.value, "embedding: weight");
  check_contiguous(weight.value, "embedding: weight");
  TANDEM_CHECK(ids.dim() == 1 && weight.value.dim() == 2,
               "embedding: ids have {} dimensions and the weight {}",
               ids.dim(),
               weight.value.dim());
  const auto y = at::empty({ids.numel(), weight.value.size(1)}, weight.value.options());
  const auto row_bytes = static_cast<std::size_t>(weight.value.size(1)) * weight.value.itemsize();
  const auto* from = static_cast<const char*>(weight.value.const_data_ptr());
  auto* to = static_cast<char*>(y.data_ptr());
  const auto* id = ids.const_data_ptr<std::int32_t>();
  for (std::int64_t r = 0; r < ids.numel(); ++r) {
    TANDEM_CHECK(id[r] >= 0 && id[r] < weight.value.size(0),
                 "embedding: id {} is beyond the {} rows of the weight",
                 id[r],
                 weight.value.size(0));
    std::memcpy(to + static_cast<std::size_t>(r) * row_bytes,
                from + static_cast<std::size_t>(id[r]) * row_bytes,
                row_bytes);
  }
  if (recording() && weight.grad.defined()) {
    record({y}, {}, [ids, grad = weight.grad](const std::vector<at::Tensor>& dy) {
      scatter_add(ids, dy[0].to(at::kFloat).contiguous(), grad);
      return std::vector<at::Tensor>();
    });
  }
  return y;
}

at::Tensor gated_silu(const at::Tensor& x) {
  check_storage(x, "gated_silu: x");
  check_contiguous(x, "gated_silu: x");
  TANDEM_CHECK(x.dim() == 2 && x.size(1) % 2 == 0,
               "gated_silu: x has {} dimensions and rows of {}",
               x.dim(),
               x.size(-1));
  const auto y = gated(x, {});
  if (wants_gradient(x)) {
    record({y}, {x}, [x](const std::vector<at::Tensor>& dy) {
      return std::vector<at::Tensor>{gated(x, dy[0].contiguous())};
    });
  }
  return y;
}

at::Tensor add(const at::Tensor& x, const at::Tensor& y) {
  check_storage(x, "add: x");
  check_contiguous(x, "add: x");
  check_type(y, x.scalar_type(), "add: y");
  check_contiguous(y, "add: y");
  TANDEM_CHECK(x.sizes() == y.sizes(), "add: x and y have different shapes");
  const auto sum = at::empty(x.sizes(), x.options());
  for_row_ranges(x.numel(), 1, [&](std::int64_t first, std::int64_t count) {
    with_storage(x, [&](auto type) {
      using T = decltype(type);
      const AddArgs<T> args = {
          pointer<const T>(x) + first, pointer<const T>(y) + first, pointer<T>(sum) + first, count};
      if constexpr (std::is_same_v<T, float>) {
        table().elementwise.add_f32(args);
      } else {
        table().elementwise.add_bf16(args);
      }
    });
  });
  if (wants_gradient(x) || wants_gradient(y)) {
    record({sum}, {x, y}, [](const std::vector<at::Tensor>& grad) {
      return std::vector<at::Tensor>{grad[0], grad[0]};
    });
  }
  return sum;
}

}  // namespace tandem::kernels
