// Scores of a model on a data set: mean, best and majority of n samples a prompt, by source.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "app/rl/collect.h"
#include "app/rl/score.h"
#include "app/rl/step_metrics.h"

namespace tandem::app {

/// val/SOURCE/{reward,acc}/{mean@n,best@n,maj@n} of scored groups with n samples each, and the same
/// under the source "all" where there are several sources.
///
/// `reward` is the weighted sum of a recipe's rewards, `acc` the first of them alone. best@n is the
/// mean over prompts of the best sample (pass@n for rewards of 0 and 1), maj@n that of the samples
/// whose text most agree on (the first such text of several). A sample without a reward counts 0.
Metrics validation_metrics(std::span<const Group> groups,
                           std::span<const rewards::RewardConfig> configs);

/// The mean reward over all sources, or none where a step has no validation.
std::optional<double> validation_reward(const Metrics& metrics);

}  // namespace tandem::app
