// Attention on one thread: what it takes, and its entries in the table of an instruction set.
#pragma once

#include <stdint.h>

namespace tandem::kernels {

// Shape letters: R query rows, N query heads, G key-value heads (N divisible by G), D head width,
// S slots.

/// Sizes and settings; see kernels/attention.h.
struct AttentionShape {
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t window = 0;  // 0: none
  float scale = 1;
  float softcap = 0;  // 0: none
};

/// Query rows one after another in memory, on one path, at consecutive positions.
struct QueryBlock {
  const int32_t* slots = nullptr;  // by logical position
  int64_t first_row = 0;
  int64_t num_rows = 0;
  int64_t first_position = 0;
};

/// Heads are D apart, rows and slots by their strides (in elements). T is float or Bf16.
struct AttentionForward {
  AttentionShape shape;
  const void* q = nullptr;  // [R, N, D] T
  const void* k = nullptr;  // [S, G, D] T
  const void* v = nullptr;
  int64_t q_stride = 0;
  int64_t k_stride = 0;
  int64_t v_stride = 0;
  void* out = nullptr;   // [R, N, D] T, contiguous
  float* lse = nullptr;  // [R, N] log of the sum of exponentials; may be null
};

struct AttentionBackward {
  AttentionForward forward;    // its `out` and `lse` are read
  const void* dout = nullptr;  // [R, N, D] T, contiguous
  void* dq = nullptr;          // [R, N, D] T, contiguous
};

/// Where one task adds up the gradients of the key rows that it sees, for one key-value head.
struct KeyGradient {
  float* dk = nullptr;     // [slots, D], of slots from first_slot on
  float* dv = nullptr;     // the same
  int64_t first_slot = 0;  // of those that the task sees
};

/// One block of query rows with the heads of one key-value head.
struct AttentionTask {
  QueryBlock block;
  int64_t kv_head = 0;
  float* scratch = nullptr;  // scratch_size floats, 64-byte aligned, of this thread alone
};

/// Query rows times query heads of one key-value head that a block has, if one row is not more.
constexpr int64_t kAttentionBlockQueries = 32;

struct AttentionTable {
  int64_t (*scratch_size)(int64_t num_queries, int64_t head_dim);
  void (*forward_f32)(const AttentionForward&, const AttentionTask&);
  void (*forward_bf16)(const AttentionForward&, const AttentionTask&);
  void (*backward_f32)(const AttentionBackward&, const AttentionTask&, const KeyGradient&);
  void (*backward_bf16)(const AttentionBackward&, const AttentionTask&, const KeyGradient&);
};

}  // namespace tandem::kernels
