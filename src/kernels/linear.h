// x times a weight transposed, each output one chain over K: the same bits for any batch and
// layout.
#pragma once

#include <cstdint>

#include "kernels/weight.h"

namespace tandem::kernels {

// Shape letters: R rows (tokens), K inputs, N outputs.

/// y[r, n] = bias[n] + sum over k of x[r, k] * weight[n, k].   x [R, K], weight [N, K] -> [R, N]
///
/// The sum is cut into `num_slices` equal ranges of K (K must be divisible). Each range is one
/// chain: 4 lanes over k, lane j summing k = j, j + 4, ... by fused multiply-add from zero, then
/// (lane 0 + lane 2) + (lane 1 + lane 3); the ranges' sums are added in order, the bias last.
/// bfloat16 is widened first, or with Arithmetic::kDotBf16 lane j sums the pairs k = 2 j, 2 j + 1,
/// 2 j + 8, 2 j + 9, ... in the instruction's way. float32 accumulation; the result has x's type
/// (float32, or bfloat16 rounded to nearest even). No bit of a row depends on other rows, on R, or
/// on the number of threads.
///
/// Differentiable where gradients are on and x or the weight wants one: dx is returned, the
/// weight's and bias's gradients are added into `grad`.
at::Tensor linear(const at::Tensor& x,
                  const Weight& weight,
                  const Weight& bias = {},
                  std::int64_t num_slices = 1);

/// `linear` without gradients into `y` [R, N], of x's type or float32. Rows of x and y may be
/// strided (their elements are contiguous).
void linear_into(const at::Tensor& x,
                 const at::Tensor& weight,
                 const at::Tensor& bias,
                 std::int64_t num_slices,
                 const at::Tensor& y);

/// `y`, which is the result of `linear(x, weight, bias)` and known already, with its history.
at::Tensor linear_known(const at::Tensor& y,
                        const at::Tensor& x,
                        const Weight& weight,
                        const Weight& bias);

}  // namespace tandem::kernels
