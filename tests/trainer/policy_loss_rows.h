// Rows of tokens for the tests of the policy losses, and the loss of a whole minibatch of them.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/loss_normalizer.h"
#include "trainer/policy_loss.h"

namespace tandem::trainer::test {

template <class T>
struct Row {
  std::vector<T> logp{};
  std::vector<T> behavior{};
  std::vector<T> ref{};
  std::vector<T> entropy{};
  std::vector<std::uint8_t> mask{};
  double advantage = 0;
};

template <class T>
struct Result {
  PolicyLossSums sums;
  std::vector<std::vector<T>> logp_gradient;
  std::vector<std::vector<T>> entropy_gradient;
};

template <class T>
std::vector<std::int64_t> counted_tokens(const std::vector<Row<T>>& rows) {
  std::vector<std::int64_t> tokens;
  for (const auto& row : rows) {
    tokens.push_back(num_counted_tokens<T>(row.mask, row.behavior));
  }
  return tokens;
}

template <class T>
Result<T> evaluate(const std::vector<Row<T>>& rows, const PolicyLossConfig& config) {
  const auto tokens = counted_tokens(rows);
  const LossNormalizer normalizer(tokens, config);
  Result<T> result;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row<T>& row = rows[i];
    auto& dlogp = result.logp_gradient.emplace_back(row.mask.size());
    auto& dentropy = result.entropy_gradient.emplace_back(row.entropy.size());
    sequence_loss<T>({.logp = row.logp,
                      .behavior_logp = row.behavior,
                      .ref_logp = row.ref,
                      .entropy = row.entropy,
                      .mask = row.mask,
                      .advantage = row.advantage},
                     config,
                     normalizer.token_weight(tokens[i]),
                     {.logp = dlogp, .entropy = dentropy},
                     result.sums);
  }
  return result;
}

// Lengths of 1 to 12 with holes in the masks; a plain linear congruence gives the numbers.
inline std::vector<Row<double>> uneven_rows() {
  std::uint32_t state = 7;
  const auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return static_cast<double>(state >> 8) / 16777216.0;
  };
  std::vector<Row<double>> rows;
  for (const std::size_t length : {1, 7, 3, 12, 5, 5, 9, 2}) {
    Row<double> row;
    row.advantage = next() * 2 - 1;
    for (std::size_t t = 0; t < length; ++t) {
      row.logp.push_back(-2 * next());
      row.behavior.push_back(row.logp.back() + 0.8 * (next() - 0.5));
      row.ref.push_back(row.logp.back() + next() - 0.5);
      row.entropy.push_back(3 * next());
      row.mask.push_back(t % 4 == 2 ? 0 : 1);
    }
    rows.push_back(row);
  }
  return rows;
}

inline std::vector<PolicyLossConfig> differentiable_configs() {
  std::vector<PolicyLossConfig> configs;
  for (const std::string name : {"grpo", "dr_grpo", "dapo", "rloo"}) {
    for (const auto kl : {KlEstimator::kK1, KlEstimator::kK2, KlEstimator::kK3}) {
      auto config = algorithm_preset(name).loss;
      config.norm_length = 12;
      config.clip_dual = 1.1;
      config.kl = {.coefficient = 0.3, .estimator = kl};
      config.entropy_coefficient = 0.05;
      configs.push_back(config);
    }
  }
  return configs;
}

}  // namespace tandem::trainer::test
