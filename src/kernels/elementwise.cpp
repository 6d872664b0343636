#include "kernels/elementwise.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/autograd.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"

namespace tandem::kernels {
namespace {

constexpr std::int64_t kTaskElements = 32768;  // about 10 us

// Calls `f(first, count)` over [0, rows) in ranges of about kTaskElements elements.
template <class F>
void for_row_ranges(std::int64_t rows, std::int64_t row_size, F&& f) {
  const std::int64_t step =
      std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(row_size, 1));
  compute_pool().parallel_for(ceil_div(rows, step), [&](std::int64_t task) {
    f(task * step, std::min(step, rows - task * step));
  });
}

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

at::Tensor rotate(const at::Tensor& x,
                  const at::Tensor& positions,
                  const RotaryTable& angles,
                  bool inverse) {
  const auto y = at::empty(x.sizes(), x.options());
  const std::int64_t row_size = x.size(1) * x.size(2);
  for_row_ranges(x.size(0), row_size, [&](std::int64_t first, std::int64_t count) {
    with_storage(x, [&](auto type) {
      using T = decltype(type);
      const RotaryArgs<T> args = {pointer<const T>(x) + first * row_size,
                                  pointer<const std::int32_t>(positions) + first,
                                  pointer<const float>(angles.cos),
                                  pointer<const float>(angles.sin),
                                  pointer<T>(y) + first * row_size,
                                  count,
                                  x.size(1),
                                  x.size(2),
                                  inverse};
      if constexpr (std::is_same_v<T, float>) {
        table().elementwise.rotary_f32(args);
      } else {
        table().elementwise.rotary_bf16(args);
      }
    });
  });
  return y;
}

void check_rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& angles) {
  check_storage(x, "rotary: x");
  check_contiguous(x, "rotary: x");
  check_type(positions, at::kInt, "rotary: positions");
  check_contiguous(positions, "rotary: positions");
  check_type(angles.cos, at::kFloat, "rotary: cos");
  check_contiguous(angles.cos, "rotary: cos");
  check_type(angles.sin, at::kFloat, "rotary: sin");
  check_contiguous(angles.sin, "rotary: sin");
  TANDEM_CHECK(x.dim() == 3 && x.size(0) == positions.numel(),
               "rotary: {} positions for x of {} rows",
               positions.numel(),
               x.size(0));
  TANDEM_CHECK(angles.cos.dim() == 2 && angles.cos.sizes() == angles.sin.sizes() &&
                   2 * angles.cos.size(1) == x.size(2),
               "rotary: the table is not for heads of width {}",
               x.size(2));
  const auto* position = positions.const_data_ptr<std::int32_t>();
  for (std::int64_t r = 0; r < positions.numel(); ++r) {
    TANDEM_CHECK(position[r] >= 0 && position[r] < angles.cos.size(0),
                 "rotary: position {} is beyond the table of {}",
                 position[r],
                 angles.cos.size(0));
  }
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

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& table) {
  check_rotary(x, positions, table);
  const auto y = rotate(x, positions, table, false);
  if (wants_gradient(x)) {
    record({y}, {x}, [positions, table](const std::vector<at::Tensor>& dy) {
      return std::vector<at::Tensor>{rotate(dy[0].contiguous(), positions, table, true)};
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
