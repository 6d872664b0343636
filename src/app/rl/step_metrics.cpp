#include "app/rl/step_metrics.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

namespace tandem::app {
namespace {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return sum / static_cast<double>(values.size());
}

// With n - 1 in the denominator; 0 for fewer than two values.
double deviation(std::span<const double> values) {
  if (values.size() < 2) {
    return 0;
  }
  const double m = mean(values);
  double squares = 0;
  for (const double value : values) {
    squares += (value - m) * (value - m);
  }
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

void add_lengths(const std::string& suffix, std::span<const double> lengths, Metrics& metrics) {
  if (lengths.empty()) {
    return;
  }
  metrics["completions/mean_" + suffix] = mean(lengths);
  metrics["completions/min_" + suffix] = *std::min_element(lengths.begin(), lengths.end());
  metrics["completions/max_" + suffix] = *std::max_element(lengths.begin(), lengths.end());
}

template <class Count>
double share(Count part, Count whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::int64_t total_tokens(std::span<const Group> groups) {
  std::int64_t tokens = 0;
  for (const auto& group : groups) {
    for (const auto& t : group.trajectories) {
      tokens += static_cast<std::int64_t>(t.ids.size());
    }
  }
  return tokens;
}

std::int64_t sampled_tokens(std::span<const Group> groups) {
  std::int64_t tokens = 0;
  for (const auto& group : groups) {
    for (const auto& t : group.trajectories) {
      tokens += t.completion_length();
    }
  }
  return tokens;
}

void add_completion_metrics(std::span<const Group> groups, Metrics& metrics) {
  std::vector<double> lengths, terminated;
  for (const auto& group : groups) {
    for (const auto& t : group.trajectories) {
      lengths.push_back(static_cast<double>(t.completion_length()));
      if (t.finish_reason != FinishReason::kLength) {
        terminated.push_back(lengths.back());
      }
    }
  }
  add_lengths("length", lengths, metrics);
  add_lengths("terminated_length", terminated, metrics);
  metrics["completions/clipped_ratio"] = share(lengths.size() - terminated.size(), lengths.size());
}

void add_reward_metrics(std::span<const Group> groups,
                        std::span<const GroupScore> scores,
                        std::span<const rewards::RewardConfig> configs,
                        Metrics& metrics) {
  for (const auto& config : configs) {
    std::vector<double> values;
    std::int64_t failures = 0;
    for (const auto& group : groups) {
      for (const auto& t : group.trajectories) {
        const auto found = t.rewards.find(config.name);
        if (found == t.rewards.end()) {
          continue;
        }
        failures += found->second.failure.empty() ? 0 : 1;
        if (found->second.value) {
          values.push_back(*found->second.value);
        }
      }
    }
    const std::string prefix = "rewards/" + config.name + "/";
    metrics[prefix + "failures"] = static_cast<double>(failures);
    if (!values.empty()) {
      metrics[prefix + "mean"] = mean(values);
      metrics[prefix + "std"] = deviation(values);
    }
  }
  std::vector<double> totals, group_stds;
  std::size_t rows = 0, zero_std_rows = 0;
  for (const auto& score : scores) {
    rows += score.rewards.size();
    zero_std_rows += score.advantages.zero_std ? score.rewards.size() : 0;
    group_stds.push_back(score.advantages.std);
    for (const auto& reward : score.rewards) {
      if (reward) {
        totals.push_back(*reward);
      }
    }
  }
  metrics["frac_reward_zero_std"] = share(zero_std_rows, rows);
  if (!totals.empty()) {
    metrics["reward"] = mean(totals);
    metrics["reward_std"] = mean(group_stds);
  }
}

void add_train_metrics(const trainer::TrainStepReport& report, bool with_kl, Metrics& metrics) {
  const auto& sums = report.sums;
  metrics["train/skipped_steps"] = static_cast<double>(report.num_skipped);
  metrics["train/empty_steps"] = static_cast<double>(report.num_empty);
  metrics["train/zero_weight_sequences"] = static_cast<double>(report.num_zero_weight);
  metrics["train/rows"] = static_cast<double>(report.num_rows);
  metrics["train/sampled_rows"] = static_cast<double>(report.num_sampled_rows);
  metrics["train/padding_fraction"] = 0.0;
  metrics["numerics/logprob_gap_max"] = report.first.logp_gap_max;
  metrics["numerics/ratio_not_one_fraction"] =
      share(report.first.num_ratio_not_one, report.first.num_tokens);
  if (sums.num_tokens == 0) {
    return;
  }
  const auto n = static_cast<double>(sums.num_tokens);
  const auto updates = static_cast<double>(std::max<std::int64_t>(report.num_updates, 1));
  metrics["loss"] = sums.loss / updates;
  metrics["grad_norm"] = report.grad_norm;
  metrics["learning_rate"] = report.learning_rate;
  metrics["entropy"] = sums.entropy / n;
  if (with_kl) {
    metrics["kl"] = sums.kl / n;
  }
  // TRL's least and greatest are over the losses of its ranks; here over the step's updates.
  metrics["clip_ratio/low_mean"] = share(sums.num_clipped_low, sums.num_tokens);
  metrics["clip_ratio/low_min"] = report.clip_low_min;
  metrics["clip_ratio/high_mean"] = share(sums.num_clipped_high, sums.num_tokens);
  metrics["clip_ratio/high_max"] = report.clip_high_max;
  metrics["clip_ratio/region_mean"] =
      share(sums.num_clipped_low + sums.num_clipped_high, sums.num_tokens);
  metrics["sampling/sampling_logp_difference/mean"] =
      share(report.first.logp_gap, static_cast<double>(report.first.num_tokens));
  metrics["sampling/sampling_logp_difference/max"] = report.first.logp_gap_max;
  metrics["sampling/importance_sampling_ratio/min"] = sums.ratio_min;
  metrics["sampling/importance_sampling_ratio/mean"] = sums.ratio / n;
  metrics["sampling/importance_sampling_ratio/max"] = sums.ratio_max;
}

void add_rollout_metrics(const rollout::SchedulerCounters& before,
                         const rollout::SchedulerCounters& after,
                         Metrics& metrics) {
  metrics["rollout/prefix_hit_rate"] =
      share(after.prefix_hit_tokens - before.prefix_hit_tokens,
            after.prefix_query_tokens - before.prefix_query_tokens);
  const auto add = [&](const char* name, std::int64_t rollout::SchedulerCounters::*counter) {
    metrics[name] = static_cast<double>(after.*counter - before.*counter);
  };
  using Counters = rollout::SchedulerCounters;
  add("rollout/preemptions", &Counters::preemptions);
  add("rollout/tokens_recomputed", &Counters::tokens_recomputed);
  if (after.drafts > before.drafts) {
    add("rollout/drafts", &Counters::drafts);
    add("rollout/drafts_accepted", &Counters::drafts_accepted);
  }
}

}  // namespace tandem::app
