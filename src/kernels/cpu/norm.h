// Root-mean-square norm on one thread: what it takes, and its entries in the table.
#pragma once

#include <stdint.h>

#include "kernels/cpu/bf16.h"

namespace tandem::kernels {

template <class T>
struct RmsNormArgs {
  const T* x;       // [rows, width]
  const T* weight;  // [width]
  T* y;             // [rows, width]
  float* inverse;   // [rows]: 1 / sqrt(mean(x^2) + eps), for backward; or null
  int64_t rows;
  int64_t width;
  float eps;
};

template <class T>
struct RmsNormBackwardArgs {
  const T* x;            // [rows, width]
  const T* weight;       // [width]
  const float* inverse;  // [rows]
  const T* dy;           // [rows, width]
  const T* dpass;        // [rows, width], added to dx before it is rounded; or null
  T* dx;                 // [rows, width], or null
  float* dweight;        // [width], added to in row order; or null
  int64_t rows;
  int64_t width;
};

struct NormTable {
  void (*rms_norm_f32)(const RmsNormArgs<float>&);
  void (*rms_norm_bf16)(const RmsNormArgs<Bf16>&);
  void (*rms_norm_backward_f32)(const RmsNormBackwardArgs<float>&);
  void (*rms_norm_backward_bf16)(const RmsNormBackwardArgs<Bf16>&);
};

}  // namespace tandem::kernels
