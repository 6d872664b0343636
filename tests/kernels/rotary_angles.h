// Rotary angles for tests of what turns by them.
#pragma once

#include <ATen/ATen.h>

#include "kernels/heads.h"

namespace tandem::kernels {

inline RotaryTable angles(std::int64_t positions, std::int64_t half) {
  const auto inverse = at::pow(10000.0, -at::arange(half, at::kDouble) / static_cast<double>(half));
  const auto angle = at::arange(positions, at::kDouble).unsqueeze(1) * inverse;
  return {at::cos(angle).to(at::kFloat), at::sin(angle).to(at::kFloat)};
}

}  // namespace tandem::kernels
