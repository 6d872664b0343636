#include "app/rl/score.h"

#include <algorithm>

#include <fmt/format.h>

namespace tandem::app {
namespace {

rewards::RewardSample to_sample(const Group& group, const Trajectory& t) {
  rewards::RewardSample sample;
  sample.id = label_of(group, t);
  sample.prompt_text = group.prompt.text;
  sample.messages = group.prompt.messages;
  sample.completion = t.text;
  sample.completion_ids.assign(t.ids.begin() + t.prompt_length, t.ids.end());
  sample.ground_truth = group.prompt.ground_truth;
  sample.columns_json = group.prompt.row_json.empty() ? "{}" : group.prompt.row_json;
  sample.finish_reason = name_of(t.finish_reason);
  return sample;
}

bool must_drop(const Group& group, std::span<const rewards::RewardConfig> configs) {
  return std::any_of(configs.begin(), configs.end(), [&](const auto& config) {
    return config.on_failure == "drop_group" &&
           std::any_of(group.trajectories.begin(), group.trajectories.end(), [&](const auto& t) {
             const auto found = t.rewards.find(config.name);
             return found != t.rewards.end() && !found->second.failure.empty();
           });
  });
}

// Means of what the functions logged, over the samples that logged it.
class LoggedMeans {
 public:
  void add(const std::map<std::string, double>& metrics) {
    for (const auto& [name, value] : metrics) {
      sums_[name].first += value;
      ++sums_[name].second;
    }
  }
  [[nodiscard]] std::map<std::string, double> means() const {
    std::map<std::string, double> result;
    for (const auto& [name, sum] : sums_) {
      result[name] = sum.first / static_cast<double>(sum.second);
    }
    return result;
  }

 private:
  std::map<std::string, std::pair<double, std::int64_t>> sums_;
};

}  // namespace

std::string label_of(const Group& group, const Trajectory& trajectory) {
  return fmt::format("{}, sample {}", group.prompt.id, trajectory.sample);
}

std::map<std::string, double> score_groups(rewards::RewardSet& rewards,
                                           std::span<Group> groups,
                                           std::int64_t step) {
  std::vector<rewards::RewardSample> samples;
  std::vector<Trajectory*> trajectories;
  for (auto& group : groups) {
    for (auto& t : group.trajectories) {
      if (t.finish_reason != FinishReason::kError) {
        samples.push_back(to_sample(group, t));
        trajectories.push_back(&t);
      }
    }
  }
  const auto scores = rewards.score(samples, step);
  LoggedMeans logged;
  for (std::size_t f = 0; f < scores.size(); ++f) {
    const std::string& name = rewards.configs()[f].name;
    for (std::size_t i = 0; i < trajectories.size(); ++i) {
      const auto& score = scores[f][i];
      trajectories[i]->rewards[name] = {score.value, score.failure};
      trajectories[i]->extra.insert(score.extra.begin(), score.extra.end());
      logged.add(score.metrics);
    }
  }
  return logged.means();
}

std::optional<double> combined_reward(const Trajectory& trajectory,
                                      std::span<const rewards::RewardConfig> configs) {
  std::vector<std::optional<double>> values;
  std::vector<double> weights;
  for (const auto& config : configs) {
    const auto found = trajectory.rewards.find(config.name);
    values.push_back(found == trajectory.rewards.end() ? std::nullopt : found->second.value);
    weights.push_back(config.weight);
  }
  return trainer::combine_rewards(values, weights);
}

std::vector<GroupScore> score_advantages(std::span<const Group> groups,
                                         std::span<const rewards::RewardConfig> configs,
                                         const trainer::AdvantageConfig& config) {
  std::vector<GroupScore> scores;
  for (const auto& group : groups) {
    GroupScore& score = scores.emplace_back();
    score.dropped = must_drop(group, configs);
    for (const auto& t : group.trajectories) {
      score.rewards.push_back(combined_reward(t, configs));
    }
    if (score.dropped) {
      score.advantages.advantages.assign(group.trajectories.size(), 0.0);
      score.advantages.zero_std = true;
    } else {
      score.advantages = trainer::group_advantages(score.rewards, config);
    }
  }
  return scores;
}

}  // namespace tandem::app
