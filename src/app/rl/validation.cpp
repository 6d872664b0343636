#include "app/rl/validation.h"

#include <algorithm>
#include <map>
#include <vector>

#include <fmt/format.h>

namespace tandem::app {
namespace {

struct Scores {
  double mean = 0, best = 0, majority = 0;  // sums over prompts
  std::int64_t num_prompts = 0;
  std::int64_t num_samples = 0;  // of a prompt
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  const auto last = text.find_last_not_of(" \t\r\n");
  return first == std::string::npos ? std::string() : text.substr(first, last - first + 1);
}

// The sample whose text is the most frequent one; of equally frequent texts the earliest.
std::size_t majority_sample(const Group& group) {
  std::map<std::string, std::int64_t> votes;
  for (const auto& t : group.trajectories) {
    ++votes[trimmed(t.text)];
  }
  std::size_t winner = 0;
  std::int64_t most = 0;
  for (std::size_t i = 0; i < group.trajectories.size(); ++i) {
    const std::int64_t count = votes[trimmed(group.trajectories[i].text)];
    if (count > most) {
      most = count;
      winner = i;
    }
  }
  return winner;
}

void add_prompt(const Group& group, const std::vector<double>& values, Scores& scores) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  scores.mean += sum / static_cast<double>(values.size());
  scores.best += *std::max_element(values.begin(), values.end());
  scores.majority += values[majority_sample(group)];
  scores.num_samples = static_cast<std::int64_t>(values.size());
  ++scores.num_prompts;
}

std::vector<double> values_of(const Group& group, std::span<const rewards::RewardConfig> configs) {
  std::vector<double> values;
  for (const auto& t : group.trajectories) {
    values.push_back(combined_reward(t, configs).value_or(0.0));
  }
  return values;
}

}  // namespace

Metrics validation_metrics(std::span<const Group> groups,
                           std::span<const rewards::RewardConfig> configs) {
  std::map<std::pair<std::string, std::string>, Scores> all;  // by source and kind
  std::map<std::string, bool> sources;
  for (const auto& group : groups) {
    const auto reward = values_of(group, configs);
    const auto accuracy = values_of(group, configs.first(1));
    for (const std::string& source : {group.prompt.source, std::string("all")}) {
      add_prompt(group, reward, all[{source, "reward"}]);
      add_prompt(group, accuracy, all[{source, "acc"}]);
      sources[source] = true;
    }
  }
  Metrics metrics;
  for (const auto& [key, scores] : all) {
    if (key.first == "all" && sources.size() == 2) {
      continue;  // one source: its own rows say it
    }
    const auto n = static_cast<double>(scores.num_prompts);
    const std::string prefix = fmt::format("val/{}/{}/", key.first, key.second);
    metrics[fmt::format("{}mean@{}", prefix, scores.num_samples)] = scores.mean / n;
    if (scores.num_samples > 1) {
      metrics[fmt::format("{}best@{}", prefix, scores.num_samples)] = scores.best / n;
      metrics[fmt::format("{}maj@{}", prefix, scores.num_samples)] = scores.majority / n;
    }
  }
  return metrics;
}

std::optional<double> validation_reward(const Metrics& metrics) {
  std::optional<double> reward;
  for (const auto& [name, value] : metrics) {
    if (name.starts_with("val/") && name.find("/reward/mean@") != std::string::npos &&
        (!reward || name.starts_with("val/all/"))) {
      reward = value;
    }
  }
  return reward;
}

}  // namespace tandem::app
