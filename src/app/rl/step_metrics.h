// The numbers of one step, under TRL's names where TRL has them (docs/recipes.md lists all).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "app/rl/score.h"
#include "protocol/trajectory.h"
#include "rewards/reward.h"
#include "rollout/scheduler.h"
#include "trainer/train_step.h"

namespace tandem::app {

/// Sorted by name. A metric without a value in a step (no completion ended by itself, say) is
/// absent.
using Metrics = std::map<std::string, double>;

/// completions/*: lengths and how they ended.
void add_completion_metrics(std::span<const Group> groups, Metrics& metrics);

/// reward, reward_std, frac_reward_zero_std, rewards/NAME/{mean,std,failures}.
void add_reward_metrics(std::span<const Group> groups,
                        std::span<const GroupScore> scores,
                        std::span<const rewards::RewardConfig> configs,
                        Metrics& metrics);

/// loss, grad_norm, learning_rate, entropy, kl, clip_ratio/*, sampling/*, numerics/*, train/*.
void add_train_metrics(const trainer::TrainStepReport& report, bool with_kl, Metrics& metrics);

/// rollout/{prefix_hit_rate,preemptions,tokens_recomputed} of what happened between two readings,
/// and rollout/{drafts,drafts_accepted} where tokens were guessed.
void add_rollout_metrics(const rollout::SchedulerCounters& before,
                         const rollout::SchedulerCounters& after,
                         Metrics& metrics);

/// Prompt and model tokens of the groups; each sample counts its prompt, as TRL does.
std::int64_t total_tokens(std::span<const Group> groups);
std::int64_t sampled_tokens(std::span<const Group> groups);

}  // namespace tandem::app
