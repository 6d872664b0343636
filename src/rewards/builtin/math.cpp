// math: 1 when the final answer of the completion equals the ground truth, else 0.
#include "rewards/builtin/builtin.h"
#include "rewards/math/hendrycks.h"

namespace tandem::rewards {

BuiltinScore make_math(Options&) {
  return [](const RewardSample& sample) -> std::optional<double> {
    const auto found = boxes(sample.completion);
    const std::string_view answer = found.empty() ? sample.completion : found.back().content;
    return hendrycks_equal(answer, sample.ground_truth) ? 1.0 : 0.0;
  };
}

}  // namespace tandem::rewards
