// Groups to rewards and advantages.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/trajectory.h"
#include "rewards/reward.h"
#include "trainer/advantages.h"

namespace tandem::app {

/// Runs all reward functions on all trajectories and writes their outcomes into them.
///
/// Returns the mean of the numbers that functions logged, by name. Throws Error where a function
/// with `on_failure: error` failed.
std::map<std::string, double> score_groups(rewards::RewardSet& rewards,
                                           std::span<Group> groups,
                                           std::int64_t step);

/// The weighted sum of a trajectory's rewards, or none where no function applied.
std::optional<double> combined_reward(const Trajectory& trajectory,
                                      std::span<const rewards::RewardConfig> configs);

/// What became of one group.
struct GroupScore {
  std::vector<std::optional<double>> rewards;  // combined, one a trajectory
  trainer::GroupAdvantages advantages;         // all 0 where the group was dropped
  bool dropped = false;  // a function with `on_failure: drop_group` failed on a member
};

/// Advantages of all groups. A trajectory that ended in an error takes no part.
std::vector<GroupScore> score_advantages(std::span<const Group> groups,
                                         std::span<const rewards::RewardConfig> configs,
                                         const trainer::AdvantageConfig& config);

/// "PROMPT_ID, sample K": how messages name a trajectory.
std::string label_of(const Group& group, const Trajectory& trajectory);

}  // namespace tandem::app
