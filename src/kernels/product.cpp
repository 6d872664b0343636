#include "kernels/product.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"
#include "kernels/scratch.h"

namespace tandem::kernels {
namespace {

template <class A, class B>
void run(const ProductArgs<A, B>& whole, void (*kernel)(const ProductArgs<A, B>&)) {
  const std::int64_t num_col_blocks = ceil_div(whole.cols, kProductBlockCols);
  const std::int64_t block_cols =
      ceil_div(ceil_div(whole.cols, num_col_blocks), kProductPanelCols) * kProductPanelCols;
  // Tall blocks, since each copies all of its columns of b; as many as the threads share evenly.
  const std::int64_t threads = compute_pool().num_threads();
  const std::int64_t least_tasks = ceil_div(whole.rows, kProductBlockRows) * num_col_blocks;
  const std::int64_t tasks = ceil_div(least_tasks, threads) * threads;
  const std::int64_t height = ceil_div(whole.rows, ceil_div(tasks, num_col_blocks));
  const std::int64_t block_rows =
      ceil_div(std::max<std::int64_t>(height, 24), kProductTileRows) * kProductTileRows;
  const std::int64_t num_tasks = ceil_div(whole.rows, block_rows) * num_col_blocks;
  compute_pool().parallel_for(num_tasks, [&](std::int64_t task) {
    const std::int64_t row = task / num_col_blocks * block_rows;
    const std::int64_t col = task % num_col_blocks * block_cols;
    ProductArgs<A, B> part = whole;
    part.a += row * whole.a_row_stride;
    part.b += col;
    part.c += row * whole.c_stride + col;
    part.rows = std::min(block_rows, whole.rows - row);
    part.cols = std::min(block_cols, whole.cols - col);
    part.scratch = thread_scratch(kProductScratchSize);
    kernel(part);
  });
}

// Strides of the left factor: over the rows of the result, and over the sum.
struct Left {
  std::int64_t row_stride;
  std::int64_t depth_stride;
};

template <class A, class B>
ProductArgs<A, B> args_of(const at::Tensor& a,
                          Left left,
                          const at::Tensor& b,
                          const at::Tensor& sum) {
  return {pointer<const A>(a),
          pointer<const B>(b),
          pointer<float>(sum),
          left.row_stride,
          left.depth_stride,
          b.stride(0),
          sum.stride(0),
          sum.size(0),
          b.size(0),
          sum.size(1),
          nullptr};
}

void add_product(const at::Tensor& a, Left left, const at::Tensor& b, const at::Tensor& sum) {
  if (sum.numel() == 0 || b.size(0) == 0) {
    return;
  }
  const GemmTable& gemm = table().gemm;
  if (b.scalar_type() == at::kFloat) {
    check_type(a, at::kFloat, "product: dy");
    run(args_of<float, float>(a, left, b, sum), gemm.product_f32);
  } else {
    check_type(a, at::kBFloat16, "product: dy");
    run(args_of<Bf16, Bf16>(a, left, b, sum), gemm.bf16.product);
  }
}

void check_product(const at::Tensor& dy, const at::Tensor& other, const at::Tensor& sum) {
  check_storage(dy, "product: dy");
  check_rows(dy, "product: dy");
  check_storage(other, "product: right factor");
  check_rows(other, "product: right factor");
  check_type(sum, at::kFloat, "product: sum");
  check_rows(sum, "product: sum");
}

void check_shape(const at::Tensor& sum, std::int64_t rows, std::int64_t cols, bool depths_agree) {
  TANDEM_CHECK(depths_agree && sum.size(0) == rows && sum.size(1) == cols,
               "product: sum is [{}, {}] for a product of [{}, {}], or its factors disagree",
               sum.size(0),
               sum.size(1),
               rows,
               cols);
}

}  // namespace

void add_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& sum) {
  check_product(dy, weight, sum);
  check_shape(sum, dy.size(0), weight.size(1), dy.size(1) == weight.size(0));
  add_product(dy, {dy.stride(0), 1}, weight, sum);
}

void add_weight_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& sum) {
  check_product(dy, x, sum);
  check_shape(sum, dy.size(1), x.size(1), dy.size(0) == x.size(0));
  add_product(dy, {1, dy.stride(0)}, x, sum);
}

void add_bias_gradient(const at::Tensor& dy, const at::Tensor& sum) {
  const auto row = sum.view({1, -1});
  check_product(dy, dy, row);
  check_shape(row, 1, dy.size(1), true);
  add_product(at::ones({1}, dy.scalar_type()), {0, 0}, dy, row);
}

}  // namespace tandem::kernels
