// Rotary positions, gated activation and sums on one thread: what they take, and their entries in
// the table.
#pragma once

#include <stdint.h>

#include "kernels/cpu/bf16.h"

namespace tandem::kernels {

template <class T>
struct RotaryArgs {
  const T* x;                // [rows, heads, width], rows `x_stride` apart
  const int32_t* positions;  // [rows]
  const float* cos;          // [positions, width / 2]
  const float* sin;          // [positions, width / 2]
  T* y;                      // [rows, heads, width], rows `y_stride` apart
  int64_t x_stride;
  int64_t y_stride;
  int64_t rows;
  int64_t heads;
  int64_t width;
  bool inverse;  // rotate back: the gradient
};

/// y[r, i] = silu(x[r, i]) * x[r, width + i].
template <class T>
struct GatedSiluArgs {
  const T* x;   // [rows, 2 * width]
  const T* dy;  // [rows, width]; backward alone
  T* y;         // [rows, width]; in backward dx [rows, 2 * width]
  int64_t rows;
  int64_t width;
};

template <class T>
struct AddArgs {
  const T* x;
  const T* y;
  T* sum;
  int64_t size;
};

struct ElementwiseTable {
  void (*rotary_f32)(const RotaryArgs<float>&);
  void (*rotary_bf16)(const RotaryArgs<Bf16>&);
  void (*gated_silu_f32)(const GatedSiluArgs<float>&);
  void (*gated_silu_bf16)(const GatedSiluArgs<Bf16>&);
  void (*gated_silu_backward_f32)(const GatedSiluArgs<float>&);
  void (*gated_silu_backward_bf16)(const GatedSiluArgs<Bf16>&);
  void (*add_f32)(const AddArgs<float>&);
  void (*add_bf16)(const AddArgs<Bf16>&);
  void (*exp_f32)(const float* x, float* y, int64_t size);  // y = e^x, as the kernels compute it
};

}  // namespace tandem::kernels
