#include "trainer/advantages.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace tandem::trainer {
namespace {

struct Statistics {
  std::int64_t n = 0;
  double mean = 0;
  double std = 0;
  bool constant = true;
};

double grpo(double reward, const Statistics& group, double epsilon) {
  return (reward - group.mean) / (group.std + epsilon);
}

double dr_grpo(double reward, const Statistics& group, double /*epsilon*/) {
  return reward - group.mean;
}

double rloo(double reward, const Statistics& group, double /*epsilon*/) {
  const auto n = static_cast<double>(group.n);
  return group.n == 1 ? reward : n / (n - 1) * (reward - group.mean);
}

// A new estimator is a row here. The order is that of the enum.
struct EstimatorRow {
  std::string_view name;
  double (*advantage)(double reward, const Statistics& group, double epsilon);
};

constexpr std::array<EstimatorRow, 3> kEstimators = {
    {{"grpo", grpo}, {"dr_grpo", dr_grpo}, {"rloo", rloo}}};

const EstimatorRow& row_of(AdvantageEstimator estimator) {
  return kEstimators.at(static_cast<std::size_t>(estimator));
}

Statistics statistics_of(std::span<const double> rewards) {
  Statistics group;
  group.n = static_cast<std::int64_t>(rewards.size());
  if (rewards.empty()) {
    return group;
  }
  for (const double reward : rewards) {
    group.mean += reward;
    group.constant = group.constant && reward == rewards.front();
  }
  group.mean /= static_cast<double>(group.n);
  if (group.constant) {
    group.mean = rewards.front();  // the rounded sum may miss it by a bit
    return group;
  }
  double squares = 0;
  for (const double reward : rewards) {
    squares += (reward - group.mean) * (reward - group.mean);
  }
  group.std = std::sqrt(squares / static_cast<double>(group.n - 1));
  return group;
}

std::vector<double> defined_rewards(std::span<const std::optional<double>> rewards) {
  std::vector<double> defined;
  for (const auto& reward : rewards) {
    if (reward) {
      TANDEM_CHECK(std::isfinite(*reward), "a group's reward is {}, which is not finite", *reward);
      defined.push_back(*reward);
    }
  }
  return defined;
}

}  // namespace

GroupAdvantages group_advantages(std::span<const std::optional<double>> rewards,
                                 const AdvantageConfig& config) {
  TANDEM_CHECK(!rewards.empty(), "a group has no sequences");
  const bool singleton = rewards.size() == 1;
  if (singleton && !config.allow_singleton) {
    fail<UserError>(
        "algorithm.name: {} compares the samples of a prompt and got a group of one; set "
        "rollout.samples_per_prompt to 2 or more",
        name_of(config.estimator));
  }
  const auto defined = defined_rewards(rewards);
  Statistics group = statistics_of(defined);
  GroupAdvantages result;
  result.advantages.assign(rewards.size(), 0.0);
  result.mean = group.mean;
  result.std = group.std;
  result.num_defined = group.n;
  result.zero_std = group.constant && !(singleton && group.n == 1);
  if (result.zero_std) {
    return result;
  }
  if (singleton) {
    group = {.n = 1, .mean = 0, .std = 1, .constant = false};
  }
  const auto advantage = row_of(config.estimator).advantage;
  for (std::size_t i = 0; i < rewards.size(); ++i) {
    if (rewards[i]) {
      result.advantages[i] = advantage(*rewards[i], group, config.epsilon);
    }
  }
  return result;
}

std::optional<double> combine_rewards(std::span<const std::optional<double>> values,
                                      std::span<const double> weights) {
  TANDEM_CHECK(values.size() == weights.size(),
               "{} reward values for {} weights",
               values.size(),
               weights.size());
  std::optional<double> sum;
  for (std::size_t k = 0; k < values.size(); ++k) {
    if (values[k]) {
      sum = sum.value_or(0.0) + weights[k] * *values[k];
    }
  }
  return sum;
}

std::string_view name_of(AdvantageEstimator estimator) {
  return row_of(estimator).name;
}

}  // namespace tandem::trainer
