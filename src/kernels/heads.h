// Heads of the attention: cut from the rows of one product, and rotated by their positions.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tandem::kernels {

/// Cosines and sines of the rotary embedding, made once in double and kept in float32.
struct RotaryTable {
  at::Tensor cos;  // [P, D/2] float32, P positions
  at::Tensor sin;  // [P, D/2] float32
};

/// Rotates pairs (j, j + D/2) of each head by its row's position. x [R, N, D], positions [R] int32
/// below P. Differentiable. Source: Su et al., "RoFormer", arXiv:2104.09864.
at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& table);

struct HeadShape {
  std::int64_t num_heads = 0;     // N
  std::int64_t num_kv_heads = 0;  // G
  std::int64_t head_dim = 0;      // D
};

struct Heads {
  at::Tensor q;  // [R, N, D]
  at::Tensor k;  // [R, G, D]
  at::Tensor v;  // [R, G, D]
};

/// The rows of qkv [R, (N + 2 G) D] as heads. Differentiable.
Heads split_heads(const at::Tensor& qkv, const HeadShape& shape);

/// The same with queries and keys rotated, in one pass over memory each way: the bits of
/// `split_heads` and two `rotary`.
Heads split_rotated_heads(const at::Tensor& qkv,
                          const HeadShape& shape,
                          const at::Tensor& positions,
                          const RotaryTable& table);

/// Row r of `rows` [R, G, D] becomes row slots[r] of `cache` [S, G, D]: keys or values. slots [R]
/// int64 in [0, S). No gradients.
void store_rows(const at::Tensor& rows, const at::Tensor& slots, const at::Tensor& cache);

}  // namespace tandem::kernels
