// Root-mean-square norm, alone and per head.
#pragma once

#include "kernels/weight.h"

namespace tandem::kernels {

/// y[r, :] = weight * (x[r, :] / sqrt(mean(x[r, :]^2) + eps)), computed in float32.
///
/// x [R, H] or [R, N, H] (a norm per head), weight [H]; the result has x's type. In bfloat16 the
/// normalised value is rounded before it is multiplied by the weight, as Llama does. Differentiable
/// as `linear` is. Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
at::Tensor rms_norm(const at::Tensor& x, const Weight& weight, double eps);

struct NormedResidual {
  at::Tensor x;       // x itself, to add to
  at::Tensor normed;  // rms_norm(x)
};

/// The two ways that a residual stream goes on. Their gradients meet in one pass and, in bfloat16,
/// are rounded once.
NormedResidual rms_norm_residual(const at::Tensor& x, const Weight& weight, double eps);

}  // namespace tandem::kernels
