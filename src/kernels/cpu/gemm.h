// Matrix products on one thread: what they take, and their entries in the table of an instruction
// set.
#pragma once

#include <stdint.h>

#include "kernels/cpu/bf16.h"

namespace tandem::kernels {

/// y[r, n] = bias[n] + sum over k of x[r, k] * weight[n, k], in the chain of kernels/linear.h.
template <class In, class Out>
struct LinearArgs {
  const In* x;       // [rows, depth], row stride x_stride
  const In* weight;  // [outputs, depth], row stride depth
  const In* bias;    // [outputs], or null
  Out* y;            // [rows, outputs], row stride y_stride
  int64_t x_stride;
  int64_t y_stride;
  int64_t rows;
  int64_t outputs;
  int64_t depth;
  int64_t num_slices;     // depth is a multiple of it
  const In* next_weight;  // those that this thread wants after these, or null
  float* scratch;         // linear_scratch_size floats, 64-byte aligned, of this thread alone
};

/// c[i, j] += sum over k of a(i, k) * b[k, j]: one chain over k, in order, from c[i, j].
template <class A, class B>
struct ProductArgs {
  const A* a;  // [rows, depth]; element (i, k) at i * a_row_stride + k * a_depth_stride
  const B* b;  // [depth, cols], row stride b_stride
  float* c;    // [rows, cols], row stride c_stride
  int64_t a_row_stride;
  int64_t a_depth_stride;
  int64_t b_stride;
  int64_t c_stride;
  int64_t rows;
  int64_t depth;
  int64_t cols;
  float* scratch;  // kProductScratchSize floats, 64-byte aligned, of this thread alone
};

constexpr int64_t kLinearBlockRows = 94;     // rows of x that stay in the second-level cache
constexpr int64_t kLinearPanelOutputs = 16;  // outputs that are computed together

/// Floats of a panel's weights, each slice filled up to whole quads.
constexpr int64_t linear_panel_size(int64_t depth, int64_t num_slices) {
  return kLinearPanelOutputs * (depth + 8 * num_slices);
}

/// Distance of the rows in a copy of weights: their cache lines are in different sets.
constexpr int64_t linear_copy_stride(int64_t depth) {
  return depth % 32 == 0 ? depth + 32 : depth;
}

constexpr int64_t linear_scratch_size(int64_t depth, int64_t num_slices) {
  return linear_panel_size(depth, num_slices) + kLinearPanelOutputs * linear_copy_stride(depth) +
         kLinearBlockRows * depth;
}

// Blocks of a product: what one call takes at most in rows and columns, and the depth that it
// copies at a time. The copy of b's block stays in the second-level cache.
constexpr int64_t kProductTileRows = 6;
constexpr int64_t kProductPanelCols = 64;
constexpr int64_t kProductBlockRows = 192;
constexpr int64_t kProductBlockDepth = 192;  // words of 32 bits: floats, or pairs of bfloat16
constexpr int64_t kProductBlockCols = 640;
constexpr int64_t kProductScratchSize =
    kProductBlockDepth * (kProductBlockRows + kProductBlockCols);

/// Products of bfloat16 alone: there is one such part for each arithmetic.
struct Bf16Gemm {
  void (*linear)(const LinearArgs<Bf16, Bf16>&);
  void (*linear_to_f32)(const LinearArgs<Bf16, float>&);
  void (*product)(const ProductArgs<Bf16, Bf16>&);
};

struct GemmTable {
  void (*linear_f32)(const LinearArgs<float, float>&);
  void (*product_f32)(const ProductArgs<float, float>&);
  Bf16Gemm bf16;
};

}  // namespace tandem::kernels
