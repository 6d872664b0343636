// The two loops of AdamW over flat memory, in a file of their own so that they are compiled for
// vectors and without fused multiply-adds: their bits depend on the order of operations alone.
#pragma once

#include <cstdint>
#include <span>

namespace tandem::trainer {

/// Sum of squares in double, by a fixed tree of 8 lanes. Not finite only when an element is not.
double sum_of_squares(std::span<const float> values);

/// The scalars of one update, the same for all elements.
struct AdamWScalars {
  float gradient_scale = 1;  // from clipping the global norm
  float beta1 = 0;
  float one_minus_beta1 = 1;  // rounded from double: 1.0f - beta is off by 1e-5 for beta near 1
  float beta2 = 0;
  float one_minus_beta2 = 1;
  float decay = 1;                // 1 - learning_rate * weight_decay
  float step_size = 0;            // learning_rate / (1 - beta1^t)
  float inverse_sqrt_second = 1;  // 1 / sqrt(1 - beta2^t)
  float epsilon = 0;
};

/// Equally long pieces of one tensor.
struct AdamWPiece {
  std::span<float> weight{};
  std::span<const float> gradient{};
  std::span<float> first_moment{};
  std::span<float> second_moment{};
  std::span<std::uint16_t> bf16_copy{};  // of the new weight, rounded to nearest even; may be empty
};

void adamw_update(const AdamWPiece& piece, const AdamWScalars& scalars);

}  // namespace tandem::trainer
