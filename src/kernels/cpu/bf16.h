// bfloat16 as stored.
#pragma once

#include <stdint.h>

namespace tandem::kernels {

/// The upper half of a float.
struct Bf16 {
  uint16_t bits;
};

}  // namespace tandem::kernels
