#include "kernels/norm.h"

#include <algorithm>
#include <vector>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/autograd.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"

namespace tandem::kernels {
namespace {

// Rows a task; fixed, since the weight's gradient is summed within these and then over them.
std::int64_t task_rows(std::int64_t width) {
  return std::max<std::int64_t>(1, 32768 / std::max<std::int64_t>(width, 1));
}

template <class T>
void run_forward(const RmsNormArgs<T>& whole, void (*kernel)(const RmsNormArgs<T>&)) {
  const std::int64_t step = task_rows(whole.width);
  compute_pool().parallel_for(ceil_div(whole.rows, step), [&](std::int64_t task) {
    const std::int64_t row = task * step;
    RmsNormArgs<T> part = whole;
    part.x += row * whole.width;
    part.y += row * whole.width;
    part.inverse = whole.inverse == nullptr ? nullptr : whole.inverse + row;
    part.rows = std::min(step, whole.rows - row);
    kernel(part);
  });
}

// `partial` [tasks, width] gets each task's sum of the weight's gradient.
template <class T>
void run_backward(const RmsNormBackwardArgs<T>& whole,
                  float* partial,
                  void (*kernel)(const RmsNormBackwardArgs<T>&)) {
  const std::int64_t step = task_rows(whole.width);
  compute_pool().parallel_for(ceil_div(whole.rows, step), [&](std::int64_t task) {
    const std::int64_t row = task * step;
    RmsNormBackwardArgs<T> part = whole;
    part.x += row * whole.width;
    part.dy += row * whole.width;
    part.inverse += row;
    part.dpass = whole.dpass == nullptr ? nullptr : whole.dpass + row * whole.width;
    part.dx = whole.dx == nullptr ? nullptr : whole.dx + row * whole.width;
    part.dweight = partial == nullptr ? nullptr : partial + task * whole.width;
    part.rows = std::min(step, whole.rows - row);
    kernel(part);
  });
}

// What forward leaves for backward.
struct Saved {
  at::Tensor x;
  Weight weight;
  at::Tensor inverse;  // [R]
  bool wants_dx = false;
};

// The gradient of x, and of the weight in place. `pass` is what x gets from elsewhere, or
// undefined.
at::Tensor norm_backward(const Saved& saved, const at::Tensor& grad, const at::Tensor& pass) {
  const auto& [x, weight, inverse, wants_dx] = saved;
  const auto dy = grad.contiguous();
  const auto dpass = pass.defined() ? pass.contiguous() : at::Tensor();
  const std::int64_t width = weight.value.numel();
  const std::int64_t rows = inverse.numel();
  const auto dx = wants_dx ? at::empty_like(x) : at::Tensor();
  const auto partial = weight.grad.defined() ? at::zeros({ceil_div(rows, task_rows(width)), width},
                                                         weight.grad.options())
                                             : at::Tensor();
  with_storage(x, [&](auto type) {
    using T = decltype(type);
    const RmsNormBackwardArgs<T> args = {pointer<const T>(x),
                                         pointer<const T>(weight.value),
                                         pointer<const float>(inverse),
                                         pointer<const T>(dy),
                                         pointer<const T>(dpass),
                                         pointer<T>(dx),
                                         nullptr,
                                         rows,
                                         width};
    if constexpr (std::is_same_v<T, float>) {
      run_backward(args, pointer<float>(partial), table().norm.rms_norm_backward_f32);
    } else {
      run_backward(args, pointer<float>(partial), table().norm.rms_norm_backward_bf16);
    }
  });
  if (partial.defined()) {
    weight.grad.add_(partial.sum(0));
  }
  return dx;
}

void check_norm(const at::Tensor& x, const at::Tensor& weight) {
  check_storage(x, "rms_norm: x");
  check_contiguous(x, "rms_norm: x");
  check_type(weight, x.scalar_type(), "rms_norm: weight");
  check_contiguous(weight, "rms_norm: weight");
  TANDEM_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1),
               "rms_norm: weight has {} elements for rows of {}",
               weight.numel(),
               x.dim() >= 1 ? x.size(-1) : 0);
}

// y, and the rows' scales where `inverse` is defined.
at::Tensor norm_forward(const at::Tensor& x,
                        const at::Tensor& weight,
                        double eps,
                        const at::Tensor& inverse) {
  const std::int64_t width = x.size(-1);
  const auto y = at::empty(x.sizes(), x.options());
  with_storage(x, [&](auto type) {
    using T = decltype(type);
    const RmsNormArgs<T> args = {pointer<const T>(x),
                                 pointer<const T>(weight),
                                 pointer<T>(y),
                                 pointer<float>(inverse),
                                 width == 0 ? 0 : x.numel() / width,
                                 width,
                                 static_cast<float>(eps)};
    if constexpr (std::is_same_v<T, float>) {
      run_forward(args, table().norm.rms_norm_f32);
    } else {
      run_forward(args, table().norm.rms_norm_bf16);
    }
  });
  return y;
}

bool is_recorded(const at::Tensor& x, const Weight& weight) {
  return recording() && (x.requires_grad() || weight.grad.defined());
}

Saved save(const at::Tensor& x, const Weight& weight) {
  const std::int64_t width = x.size(-1);
  const std::int64_t rows = width == 0 ? 0 : x.numel() / width;
  return {x.detach(), weight, at::empty({rows}, at::kFloat), x.requires_grad()};
}

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const Weight& weight, double eps) {
  check_norm(x, weight.value);
  if (!is_recorded(x, weight)) {
    return norm_forward(x, weight.value, eps, {});
  }
  const Saved saved = save(x, weight);
  const auto y = norm_forward(saved.x, weight.value, eps, saved.inverse);
  record({y}, {x}, [saved](const std::vector<at::Tensor>& dy) {
    return std::vector<at::Tensor>{norm_backward(saved, dy[0], {})};
  });
  return y;
}

NormedResidual rms_norm_residual(const at::Tensor& x, const Weight& weight, double eps) {
  check_norm(x, weight.value);
  if (!is_recorded(x, weight)) {
    return {x, norm_forward(x, weight.value, eps, {})};
  }
  const Saved saved = save(x, weight);
  const NormedResidual both = {x.detach(), norm_forward(saved.x, weight.value, eps, saved.inverse)};
  record({both.x, both.normed}, {x}, [saved](const std::vector<at::Tensor>& grads) {
    return std::vector<at::Tensor>{grads[1].defined() ? norm_backward(saved, grads[1], grads[0])
                                                      : grads[0]};
  });
  return both;
}

}  // namespace tandem::kernels
