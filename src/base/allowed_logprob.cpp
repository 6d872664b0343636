#include "base/allowed_logprob.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tandem {

float inverse_temperature(double temperature) {
  return temperature <= kGreedyTemperature ? 1.0F : static_cast<float>(1.0 / temperature);
}

LogSumExp reduce_listed(std::span<const float> logits, float inverse_temperature) {
  LogSumExp over{-std::numeric_limits<float>::infinity(), 0};
  for (const float logit : logits) {
    over.max = std::max(over.max, logit * inverse_temperature);
  }
  if (std::isinf(over.max) && over.max < 0) {
    return over;  // -inf - -inf would be NaN
  }
  for (const float logit : logits) {
    const float scaled = logit * inverse_temperature;
    over.sum += std::exp(scaled - over.max);
  }
  return over;
}

float logprob_of(float logit, float inverse_temperature, LogSumExp over) {
  const float scaled = logit * inverse_temperature;
  return (scaled - over.max) - std::log(over.sum);
}

}  // namespace tandem
