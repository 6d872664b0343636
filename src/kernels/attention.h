// Causal attention of rows along paths of key rows: one routine for paged engine and packed
// trainer.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace tandem::kernels {

// Shape letters: R query rows, N query heads, G key-value heads (N divisible by G), D head width,
// S slots of keys and values.

/// Where each query row's keys are.
///
/// Row r at logical position p = positions[r] attends to positions 0..p of its path; the key at
/// position j lies in slot key_slots[path_start[r] + j]. The engine's block tables and the
/// trainer's prefix tree both come in this form. Rows that share a path should follow one another:
/// their keys are then loaded once.
struct KeyPaths {
  at::Tensor positions;   // [R] int32
  at::Tensor path_start;  // [R] int64, into key_slots
  at::Tensor key_slots;   // [*] int32, slots in [0, S)
};

struct AttentionOptions {
  double scale = 1;         // on q.k, usually D^-0.5
  std::int64_t window = 0;  // > 0: row at p sees positions j with p - j < window
  double softcap = 0;       // > 0: score = softcap * tanh(score / softcap)
};

/// out[r, n, :] = sum over j of softmax_j(score(q[r, n], k[j])) * v[j].   -> [R, N, D], q's type
///
/// q [R, N, D]; k, v [S, G, D]. Scores, softmax and sums in float32. Keys are walked in tiles of 16
/// logical positions from position 0, and the tiles merged from left to right (online softmax). A
/// score is four chains over D, lane j summing d = j, j + 4, ..., and then (0 + 2) + (1 + 3). So no
/// bit of a row depends on the other rows, on where its keys lie, or on the number of threads, and
/// decoding equals prefill.
///
/// Differentiable in q, k and v: backward recomputes the probabilities; a key row's gradient sums
/// over all rows that see it. Sums are in float32 there too; gradients have q's type.
at::Tensor attention(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     const KeyPaths& paths,
                     const AttentionOptions& options);

}  // namespace tandem::kernels
