// Embedding, rotary positions, gated activation and residual sums.
#pragma once

#include "kernels/weight.h"

namespace tandem::kernels {

/// Rows of `weight` [V, H] by id. ids [R] int32 -> [R, H]. Ids must be in [0, V). Differentiable.
at::Tensor embedding(const at::Tensor& ids, const Weight& weight);

/// Cosines and sines of the rotary embedding, made once in double and kept in float32.
struct RotaryTable {
  at::Tensor cos;  // [P, D/2] float32, P positions
  at::Tensor sin;  // [P, D/2] float32
};

/// Rotates pairs (j, j + D/2) of each head by its row's position. x [R, N, D], positions [R] int32
/// below P. Differentiable. Source: Su et al., "RoFormer", arXiv:2104.09864.
at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& table);

/// silu(gate) * up, of x [R, 2*I] whose rows hold gate then up -> [R, I]. Differentiable.
at::Tensor gated_silu(const at::Tensor& x);

/// x + y in float32, rounded to their type. Differentiable.
at::Tensor add(const at::Tensor& x, const at::Tensor& y);

}  // namespace tandem::kernels
