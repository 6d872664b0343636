#include "kernels/linear.h"

#include <algorithm>
#include <utility>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/autograd.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"
#include "kernels/product.h"
#include "kernels/scratch.h"

namespace tandem::kernels {
namespace {

// How a product is cut into tasks: blocks of rows by ranges of outputs, the ranges outermost so
// that a range's weights are read from memory once.
struct Cut {
  std::int64_t block_rows;
  std::int64_t num_blocks;
  std::int64_t range;
  std::int64_t num_ranges;

  Cut(std::int64_t rows, std::int64_t outputs, std::int64_t depth) {
    num_blocks = ceil_div(rows, kLinearBlockRows);
    // A block's first four rows, then tiles of six; see cpu/linear_rows.inc.
    block_rows = ceil_div(ceil_div(rows, num_blocks) - 4, 6) * 6 + 4;
    num_blocks = ceil_div(rows, block_rows);
    // About 40 us a task: 10 ps a multiply-add and 200 ps to read a weight. As many tasks as the
    // threads share evenly, of whole panels.
    const double cost_ps =
        static_cast<double>(depth) * (10.0 * static_cast<double>(block_rows) + 200.0);
    const auto longest = static_cast<std::int64_t>(40e6 / cost_ps) + 1;
    const std::int64_t threads = compute_pool().num_threads();
    const std::int64_t even = ceil_div(ceil_div(outputs, longest), threads) * threads;
    range = ceil_div(ceil_div(outputs, even), kLinearPanelOutputs) * kLinearPanelOutputs;
    num_ranges = ceil_div(outputs, range);
  }
};

template <class In, class Out>
void run(const LinearArgs<In, Out>& whole, void (*kernel)(const LinearArgs<In, Out>&)) {
  const Cut cut(whole.rows, whole.outputs, whole.depth);
  const std::int64_t num_tasks = cut.num_ranges * cut.num_blocks;
  const std::int64_t threads = compute_pool().num_threads();
  compute_pool().parallel_for(num_tasks, [&](std::int64_t task) {
    const std::int64_t row = task % cut.num_blocks * cut.block_rows;
    const std::int64_t output = task / cut.num_blocks * cut.range;
    LinearArgs<In, Out> part = whole;
    part.x += row * whole.x_stride;
    part.weight += output * whole.depth;
    part.bias = whole.bias == nullptr ? nullptr : whole.bias + output;
    part.y += row * whole.y_stride + output;
    part.rows = std::min(cut.block_rows, whole.rows - row);
    part.outputs = std::min(cut.range, whole.outputs - output);
    if (task + threads < num_tasks) {  // the other threads take the tasks between
      part.next_weight = whole.weight + (task + threads) / cut.num_blocks * cut.range * whole.depth;
    }
    part.scratch = thread_scratch(linear_scratch_size(whole.depth, whole.num_slices));
    kernel(part);
  });
}

template <class In, class Out>
LinearArgs<In, Out> args_of(const at::Tensor& x,
                            const at::Tensor& weight,
                            const at::Tensor& bias,
                            std::int64_t num_slices,
                            const at::Tensor& y) {
  return {pointer<const In>(x),
          pointer<const In>(weight),
          pointer<const In>(bias),
          pointer<Out>(y),
          x.stride(0),
          y.stride(0),
          x.size(0),
          weight.size(0),
          x.size(1),
          num_slices,
          nullptr,
          nullptr};
}

void check_linear(const at::Tensor& x,
                  const at::Tensor& weight,
                  const at::Tensor& bias,
                  std::int64_t num_slices) {
  check_storage(x, "linear: x");
  check_rows(x, "linear: x");
  check_type(weight, x.scalar_type(), "linear: weight");
  check_contiguous(weight, "linear: weight");
  TANDEM_CHECK(weight.dim() == 2 && weight.size(1) == x.size(1),
               "linear: weight has {} dimensions and {} inputs for x of {}",
               weight.dim(),
               weight.dim() == 2 ? weight.size(1) : -1,
               x.size(1));
  TANDEM_CHECK(num_slices >= 1 && x.size(1) % num_slices == 0,
               "linear: {} inputs cannot be cut into {} slices",
               x.size(1),
               num_slices);
  if (bias.defined()) {
    check_type(bias, x.scalar_type(), "linear: bias");
    check_contiguous(bias, "linear: bias");
    TANDEM_CHECK(bias.numel() == weight.size(0),
                 "linear: bias has {} elements for {} outputs",
                 bias.numel(),
                 weight.size(0));
  }
}

// Adds the gradients of weight and bias; returns that of x where it is wanted.
std::vector<at::Tensor> linear_backward(const at::Tensor& x,
                                        const Weight& weight,
                                        const Weight& bias,
                                        bool wants_dx,
                                        const at::Tensor& grad) {
  const auto dy = grad.contiguous();  // that of a sum is one element, expanded
  if (weight.grad.defined()) {
    add_weight_gradient(dy, x, weight.grad);
  }
  if (bias.grad.defined()) {
    add_bias_gradient(dy, bias.grad);
  }
  if (!wants_dx) {
    return {at::Tensor()};
  }
  const auto dx = at::zeros(x.sizes(), x.options().dtype(at::kFloat));
  add_input_gradient(dy, weight.value, dx);
  return {dx.to(x.scalar_type())};
}

}  // namespace

void linear_into(const at::Tensor& x,
                 const at::Tensor& weight,
                 const at::Tensor& bias,
                 std::int64_t num_slices,
                 const at::Tensor& y) {
  check_linear(x, weight, bias, num_slices);
  check_rows(y, "linear: y");
  TANDEM_CHECK(y.size(0) == x.size(0) && y.size(1) == weight.size(0),
               "linear: y is [{}, {}] for {} rows and {} outputs",
               y.size(0),
               y.size(1),
               x.size(0),
               weight.size(0));
  if (y.numel() == 0) {
    return;
  }
  const GemmTable& gemm = table().gemm;
  if (x.scalar_type() == at::kFloat) {
    check_type(y, at::kFloat, "linear: y");
    run(args_of<float, float>(x, weight, bias, num_slices, y), gemm.linear_f32);
  } else if (y.scalar_type() == at::kFloat) {
    run(args_of<Bf16, float>(x, weight, bias, num_slices, y), gemm.bf16.linear_to_f32);
  } else {
    check_type(y, at::kBFloat16, "linear: y");
    run(args_of<Bf16, Bf16>(x, weight, bias, num_slices, y), gemm.bf16.linear);
  }
}

at::Tensor linear(const at::Tensor& x,
                  const Weight& weight,
                  const Weight& bias,
                  std::int64_t num_slices) {
  check_linear(x, weight.value, bias.value, num_slices);
  const auto y = at::empty({x.size(0), weight.value.size(0)}, x.options());
  linear_into(x, weight.value, bias.value, num_slices, y);
  return linear_known(y, x, weight, bias);
}

at::Tensor linear_known(const at::Tensor& y,
                        const at::Tensor& x,
                        const Weight& weight,
                        const Weight& bias) {
  if (recording() && (x.requires_grad() || weight.grad.defined() || bias.grad.defined())) {
    const bool wants_dx = x.requires_grad();
    record({y}, {x}, [=](const std::vector<at::Tensor>& dy) {
      return linear_backward(x, weight, bias, wants_dx, dy[0]);
    });
  }
  return y;
}

}  // namespace tandem::kernels
