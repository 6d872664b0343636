#include "trainer/adamw_kernel.h"

#include <array>
#include <bit>
#include <cmath>

namespace tandem::trainer {
namespace {

constexpr std::size_t kLanes = 8;

// Weights are finite here: a step with a gradient that is not is skipped.
std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace

double sum_of_squares(std::span<const float> values) {
  std::array<double, kLanes> lanes{};
  const float* x = values.data();
  const std::size_t n = values.size();
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = x[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t lane = 0; i < n; ++i, ++lane) {
    const double value = x[i];
    lanes[lane] += value * value;
  }
  return ((lanes[0] + lanes[4]) + (lanes[1] + lanes[5])) +
         ((lanes[2] + lanes[6]) + (lanes[3] + lanes[7]));
}

void adamw_update(const AdamWPiece& piece, const AdamWScalars& scalars) {
  const AdamWScalars s = scalars;  // a copy the compiler may keep in registers
  float* __restrict weight = piece.weight.data();
  const float* __restrict gradient = piece.gradient.data();
  float* __restrict first = piece.first_moment.data();
  float* __restrict second = piece.second_moment.data();
  const std::size_t n = piece.weight.size();
  for (std::size_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.gradient_scale;
    const float m = s.beta1 * first[i] + s.one_minus_beta1 * g;
    const float v = s.beta2 * second[i] + s.one_minus_beta2 * (g * g);
    first[i] = m;
    second[i] = v;
    const float denominator = std::sqrt(v) * s.inverse_sqrt_second + s.epsilon;
    weight[i] = weight[i] * s.decay - s.step_size * (m / denominator);
  }
  for (std::size_t i = 0; i < piece.bf16_copy.size(); ++i) {
    piece.bf16_copy[i] = to_bf16(weight[i]);  // still in the cache: pieces are small
  }
}

}  // namespace tandem::trainer
