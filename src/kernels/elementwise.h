// Embedding, gated activation and residual sums.
#pragma once

#include "kernels/weight.h"

namespace tandem::kernels {

/// Rows of `weight` [V, H] by id. ids [R] int32 -> [R, H]. Ids must be in [0, V). Differentiable.
at::Tensor embedding(const at::Tensor& ids, const Weight& weight);

/// silu(gate) * up, of x [R, 2*I] whose rows hold gate then up -> [R, I]. Differentiable.
at::Tensor gated_silu(const at::Tensor& x);

/// x + y in float32, rounded to their type. Differentiable.
at::Tensor add(const at::Tensor& x, const at::Tensor& y);

}  // namespace tandem::kernels
