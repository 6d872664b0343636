// From the rewards of a group to one advantage per sequence: GRPO, Dr. GRPO, RLOO.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tandem::trainer {

enum class AdvantageEstimator {
  kGrpo,    // (s - mean) / (std + epsilon): Shao et al., arXiv:2402.03300, section 4.1.2
  kDrGrpo,  // s - mean: Liu et al., arXiv:2503.20783, section 3.2
  kRloo,    // s - mean of the other rewards: Ahmadian et al., arXiv:2402.14740, section 3
};

struct AdvantageConfig {
  AdvantageEstimator estimator = AdvantageEstimator::kGrpo;
  double epsilon = 1e-4;         // added to the standard deviation; positive, read by grpo alone
  bool allow_singleton = false;  // a group of one keeps its raw score instead of being refused
};

struct GroupAdvantages {
  std::vector<double> advantages;  // one a sequence, broadcast over its tokens by the loss
  double mean = 0;                 // of the defined rewards; 0 where there is none
  double std = 0;                  // of the defined rewards, with n - 1 in the denominator
  std::int64_t num_defined = 0;    // sequences that have a reward
  bool zero_std = false;           // fewer than two different rewards: all advantages are 0
};

/// The advantages of one group, in the order of its rewards.
///
/// A sequence without a reward takes no part in mean and std, and its advantage is 0. When all
/// defined rewards are equal every advantage is exactly 0, whatever the rounding of the mean; so it
/// is when only one sibling of several has a reward, since nothing is left to compare it with.
/// Throws UserError for a group of one unless `allow_singleton` (mean 0 and std 1 are then taken),
/// Error for an empty group and for a reward that is not finite.
GroupAdvantages group_advantages(std::span<const std::optional<double>> rewards,
                                 const AdvantageConfig& config);

/// Sum of weight times value over the values that are defined, or none when no value is.
///
/// A function that does not apply to a sample is left out, never counted as 0. Throws Error when
/// the lengths differ.
std::optional<double> combine_rewards(std::span<const std::optional<double>> values,
                                      std::span<const double> weights);

/// "grpo", "dr_grpo" or "rloo".
std::string_view name_of(AdvantageEstimator estimator);

}  // namespace tandem::trainer
