// A parameter as the kernels see it: its value and, where it is trained, where its gradient adds
// up.
#pragma once

#include <ATen/core/Tensor.h>

namespace tandem::kernels {

struct Weight {
  at::Tensor value;  // working precision (float or bfloat16), contiguous
  at::Tensor grad;   // float32, same shape; backward adds into it. Undefined: frozen
};

}  // namespace tandem::kernels
