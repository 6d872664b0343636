// Matrix products of backward passes, added in place, split over outputs alone.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem::kernels {

// Shape letters: R rows (tokens), K inputs, N outputs.

/// sum[r, k] += over n: dy[r, n] * weight[n, k].   dy [R, N], weight [N, K], sum [R, K] float32
///
/// One chain over n from what `sum` holds, in order: the bits depend on neither threads nor R.
/// All may have row strides; rows are contiguous. dy and weight are both float32 or both bfloat16.
/// In bfloat16 with Arithmetic::kDotBf16 the chain takes n in pairs, (0, 1), (2, 3), ..., each
/// added in the instruction's way.
void add_input_gradient(const at::Tensor& dy, const at::Tensor& weight, const at::Tensor& sum);

/// sum[n, k] += over r: dy[r, n] * x[r, k].   dy [R, N], x [R, K], sum [N, K] float32
///
/// As above, one chain over the rows.
void add_weight_gradient(const at::Tensor& dy, const at::Tensor& x, const at::Tensor& sum);

/// sum[n] += over r: dy[r, n].   dy [R, N] float32 or bfloat16, sum [N] float32
///
/// As above, one chain over the rows.
void add_bias_gradient(const at::Tensor& dy, const at::Tensor& sum);

}  // namespace tandem::kernels
