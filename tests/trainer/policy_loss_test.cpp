#include "trainer/policy_loss.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/golden.h"
#include "trainer/loss_normalizer.h"

namespace tandem::trainer {
namespace {

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

std::vector<Row<double>> golden_rows(const nlohmann::json& inputs) {
  std::vector<Row<double>> rows;
  for (std::size_t i = 0; i < inputs.at("log_prob").size(); ++i) {
    Row<double> row;
    row.logp = inputs.at("log_prob").at(i).get<std::vector<double>>();
    row.behavior = inputs.at("old_log_prob").at(i).get<std::vector<double>>();
    if (inputs.contains("ref_log_prob")) {
      row.ref = inputs.at("ref_log_prob").at(i).get<std::vector<double>>();
    }
    for (const double m : inputs.at("response_mask").at(i).get<std::vector<double>>()) {
      row.mask.push_back(m != 0 ? 1 : 0);
    }
    row.advantage = inputs.at("advantages").at(i).at(0).get<double>();
    rows.push_back(row);
  }
  return rows;
}

void check_golden(const nlohmann::json& want,
                  const std::vector<Row<double>>& rows,
                  const PolicyLossConfig& config) {
  // A mean over the tokens of a row divides by n + 1e-8 there, and so do the metrics.
  const bool row_mean = config.aggregation == Aggregation::kSeqMeanTokenMean;
  const auto got = evaluate(rows, config);
  CHECK(std::abs(got.sums.loss - want.at("loss").get<double>()) <= (row_mean ? 1e-8 : 1e-9));
  const auto gradient = test::rows_of(want.at("grad"));
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    for (std::size_t t = 0; t < gradient[i].size(); ++t) {
      CAPTURE(i);
      CAPTURE(t);
      CHECK(std::abs(got.logp_gradient[i][t] - gradient[i][t]) <= (row_mean ? 1e-8 : 1e-9));
    }
  }
  const auto& metrics = want.at("metrics");
  const auto n = static_cast<double>(got.sums.num_tokens);
  const auto clipped = static_cast<double>(got.sums.num_clipped_low + got.sums.num_clipped_high);
  CHECK(std::abs(clipped / n - metrics.at("actor/pg_clipfrac").get<double>()) <= 1e-7);
  CHECK(std::abs(static_cast<double>(got.sums.num_clipped_dual) / n -
                 metrics.at("actor/pg_clipfrac_lower").get<double>()) <= 1e-7);
  CHECK(std::abs(-got.sums.log_ratio / n - metrics.at("actor/ppo_kl").get<double>()) <= 1e-7);
}

// The reference's cases that these settings cover.
std::vector<std::pair<std::string, PolicyLossConfig>> covered_cases() {
  std::vector<std::pair<std::string, PolicyLossConfig>> cases;
  for (const std::string name : {"token-mean",
                                 "seq-mean-token-sum",
                                 "seq-mean-token-mean",
                                 "seq-mean-token-sum-norm",
                                 "token-sum"}) {
    cases.emplace_back(
        "ppo clip=0.2 dual_clip_c=3 " + name,
        PolicyLossConfig{.clip_dual = 3, .aggregation = aggregation_from(name), .norm_length = 5});
  }
  cases.emplace_back(
      "ppo clip=0.2/0.28 (DAPO clip-higher) token-mean",
      PolicyLossConfig{.clip_high = 0.28, .clip_dual = 3, .aggregation = Aggregation::kTokenMean});
  cases.emplace_back("cispo 0.2/0.28 token-mean",
                     PolicyLossConfig{.objective = Objective::kCispo,
                                      .clip_high = 0.28,
                                      .aggregation = Aggregation::kTokenMean});
  return cases;
}

// Its cases for objectives and corrections that do not exist here yet.
const std::vector<std::string> kLater = {"ppo clip=0.2 with rollout_is_weights token-mean",
                                         "gspo low=3e-4 high=4e-4 seq-mean-token-mean",
                                         "gspo low=0.2 high=0.2 seq-mean-token-mean",
                                         "geo_mean(GMPO) 0.4/0.4 token-mean",
                                         "sapo tau 1.0/1.05 seq-mean-token-mean",
                                         "dro beta=0.05 token-mean",
                                         "gpg token-mean"};

TEST_CASE("losses, gradients and metrics equal the reference's") {
  const auto golden = test::golden_json("rl/verl_core_algos.json");
  const auto rows = golden_rows(golden.at("inputs"));
  std::vector<std::string> known = kLater;
  for (const auto& [name, config] : covered_cases()) {
    CAPTURE(name);
    check_golden(golden.at("policy_loss").at(name), rows, config);
    known.push_back(name);
  }
  for (const auto& [name, unused] : golden.at("policy_loss").items()) {
    CAPTURE(name);
    CHECK(std::ranges::count(known, name) == 1);
  }
  const auto& dual = golden.at("dual_clip");
  check_golden(dual,
               golden_rows(dual.at("inputs")),
               {.clip_dual = 3, .aggregation = Aggregation::kTokenMean});
}

TEST_CASE("KL terms equal the reference's, value and gradient") {
  const auto golden = test::golden_json("rl/verl_core_algos.json");
  const auto rows = golden_rows(golden.at("inputs"));
  for (const auto& [name, want] : golden.at("kl").items()) {
    CAPTURE(name);
    const auto estimator = kl_estimator_from(name);
    const auto value = test::rows_of(want.at("value"));
    const auto slope = test::rows_of(want.at("grad_sum"));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t t = 0; t < rows[i].mask.size(); ++t) {
        const auto kl = kl_term(estimator, rows[i].logp[t], rows[i].ref[t]);
        CHECK(std::abs(kl.value - value[i][t]) <= 1e-9);
        CHECK(std::abs(kl.slope * rows[i].mask[t] - slope[i][t]) <= 1e-9);
      }
    }
    // In a loss it is added with the policy's weights, beside a policy term that is zero here.
    auto still = rows;
    for (auto& row : still) {
      row.advantage = 0;
    }
    const auto got = evaluate(still,
                              {.kl = {.coefficient = 0.5, .estimator = estimator},
                               .aggregation = Aggregation::kTokenSum});
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t t = 0; t < rows[i].mask.size(); ++t) {
        CHECK(std::abs(got.logp_gradient[i][t] - 0.5 * slope[i][t]) <= 1e-9);
      }
    }
  }
}

TEST_CASE("k3 far from the reference is finite and still pulls back") {
  CHECK(std::isfinite(kl_term(KlEstimator::kK3, -200, 0).value));
  CHECK(kl_term(KlEstimator::kK3, -5, 0).slope < -100);
  CHECK(kl_term(KlEstimator::kK3, 0, -200).slope == doctest::Approx(1));
}

TEST_CASE("ppo losses equal torchtune's") {
  const auto golden = test::golden_json("rl/torchtune_cases.json").at("ppo_policy_loss");
  REQUIRE(golden.at("cases").size() == 3);
  for (const auto& one : golden.at("cases")) {
    Row<double> row;
    row.logp = one.at("new").get<std::vector<double>>();
    row.behavior = golden.at("old").get<std::vector<double>>();
    row.mask = {1, 1, 1};
    row.advantage = 1;
    const auto got = evaluate<double>({row}, {.aggregation = Aggregation::kTokenMean});
    CHECK(got.sums.loss == doctest::Approx(one.at("loss").get<double>()).epsilon(1e-9));
    CHECK(got.sums.ratio / 3 == doctest::Approx(one.at("ratio").get<double>()).epsilon(1e-9));
  }
}

TEST_CASE("worked numbers of single tokens") {
  const auto loss = [](double logp, double behavior, double a, const PolicyLossConfig& config) {
    return evaluate<double>({{.logp = {logp}, .behavior = {behavior}, .mask = {1}, .advantage = a}},
                            config)
        .sums.loss;
  };
  CHECK(loss(-1, -1, 1, {}) == -1);
  CHECK(loss(-0.5, -1, 1, {}) == doctest::Approx(-1.2));
  CHECK(loss(-0.5, -1, 1, {.clip_high = 0.28}) == doctest::Approx(-1.28));
  CHECK(loss(-1.5, -1, -1, {}) == doctest::Approx(0.8));
  CHECK(loss(1, -1, -1, {.clip_dual = 3}) == doctest::Approx(3));
  CHECK(loss(-3, -1, 1, {}) == doctest::Approx(-0.135335).epsilon(1e-5));
}

// Lengths of 1 to 12 with holes in the masks; a plain linear congruence gives the numbers.
std::vector<Row<double>> uneven_rows() {
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

std::vector<PolicyLossConfig> differentiable_configs() {
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

TEST_CASE("gradients equal finite differences") {
  constexpr double kStep = 1e-6;
  for (const auto& config : differentiable_configs()) {
    auto rows = uneven_rows();
    const auto got = evaluate(rows, config);
    CHECK(got.sums.num_clipped_low + got.sums.num_clipped_high > 0);
    const auto slope = [&](double& x) {
      const double kept = x;
      x = kept + kStep;
      const double above = evaluate(rows, config).sums.loss;
      x = kept - kStep;
      const double below = evaluate(rows, config).sums.loss;
      x = kept;
      return (above - below) / (2 * kStep);
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
      for (std::size_t t = 0; t < rows[i].mask.size(); ++t) {
        CHECK(std::abs(got.logp_gradient[i][t] - slope(rows[i].logp[t])) <= 1e-8);
        CHECK(std::abs(got.entropy_gradient[i][t] - slope(rows[i].entropy[t])) <= 1e-8);
      }
    }
  }
}

TEST_CASE("CISPO weights the gradient by the capped ratio, and its cap has no lower side") {
  const auto config = algorithm_preset("cispo").loss;
  const Row<double> row = {
      .logp = {-1, -5, -0.5}, .behavior = {-1, -1, -4}, .mask = {1, 1, 1}, .advantage = 2};
  const auto got = evaluate<double>({row}, config);
  CHECK(got.logp_gradient[0][0] == doctest::Approx(-2.0 / 3));
  CHECK(got.logp_gradient[0][1] == doctest::Approx(-2.0 / 3 * std::exp(-4)));
  CHECK(got.logp_gradient[0][2] == doctest::Approx(-2.0 / 3 * 5));  // e^3.5 is above 1 + 4
  CHECK(got.sums.num_clipped_low == 0);
  CHECK(got.sums.num_clipped_high == 1);
}

TEST_CASE("on-policy, ratios are exactly one and the gradient is minus the advantage") {
  for (const std::string name : {"grpo", "dr_grpo", "dapo", "cispo", "rloo"}) {
    CAPTURE(name);
    auto config = algorithm_preset(name).loss;
    config.norm_length = 3;
    const Row<float> row = {.logp = {-0.3f, -2.7f, -11.9f},
                            .behavior = {-0.3f, -2.7f, -11.9f},
                            .mask = {1, 1, 1},
                            .advantage = 1.5};
    const auto got = evaluate<float>({row}, config);
    // Each token moves a sequence ratio by its whole difference: no division by the length.
    const float want = config.ratio_level == RatioLevel::kSequence ? -1.5f : -0.5f;
    CHECK(got.logp_gradient[0] == std::vector<float>(3, want));
    CHECK(got.sums.ratio_min == 1);
    CHECK(got.sums.ratio_max == 1);
    CHECK(got.sums.num_ratio_not_one == 0);
    CHECK(got.sums.logp_gap_max == 0);
    CHECK(got.sums.num_clipped_low + got.sums.num_clipped_high == 0);
  }
}

TEST_CASE("one last bit of difference between the halves is seen") {
  const float off = std::nextafter(-0.3f, 0.0f);
  const auto got =
      evaluate<float>({{.logp = {off}, .behavior = {-0.3f}, .mask = {1}, .advantage = 1}}, {});
  CHECK(got.sums.num_ratio_not_one == 1);
  CHECK(got.sums.logp_gap_max > 0);
}

TEST_CASE("masked positions may hold anything and change nothing") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& config : differentiable_configs()) {
    const auto rows = uneven_rows();
    auto spoilt = rows;
    for (auto& row : spoilt) {
      for (std::size_t t = 0; t < row.mask.size(); ++t) {
        if (row.mask[t] == 0) {
          row.logp[t] = 0;
          row.behavior[t] = t % 2 == 0 ? -2000 : nan;
          row.ref[t] = nan;
          row.entropy[t] = nan;
        }
      }
    }
    const auto want = evaluate(rows, config);
    const auto got = evaluate(spoilt, config);
    CHECK(got.sums.loss == want.sums.loss);
    CHECK(got.logp_gradient == want.logp_gradient);
    CHECK(got.entropy_gradient == want.entropy_gradient);
    CHECK(got.sums.finite());
  }
}

TEST_CASE("a sampler's NaN costs that token and is counted") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Row<double> row = {
      .logp = {-1, -1, -1}, .behavior = {-1, nan, -1}, .mask = {1, 1, 1}, .advantage = 1};
  for (const std::string name : {"grpo", "rloo"}) {
    const auto got = evaluate<double>({row}, algorithm_preset(name).loss);
    CHECK(got.sums.loss == -1);
    const double want = name == "rloo" ? -1 : -0.5;
    CHECK(got.logp_gradient[0] == std::vector<double>{want, 0, want});
    CHECK(got.sums.num_behavior_excluded == 1);
    CHECK(got.sums.finite());
  }
}

TEST_CASE(
    "a log-probability of the trained policy that is not finite spoils the step, not the sum") {
  const Row<double> row = {.logp = {-1, -std::numeric_limits<double>::infinity()},
                           .behavior = {-1, -1},
                           .mask = {1, 1},
                           .advantage = 1};
  const auto got = evaluate<double>({row}, {});
  CHECK_FALSE(got.sums.finite());
  CHECK(got.sums.num_nonfinite == 1);
  CHECK(got.logp_gradient[0][1] == 0);
}

TEST_CASE("huge differences give finite losses and gradients") {
  for (const double gap : {-1e4, 1e4}) {
    for (const double advantage : {-1.0, 1.0}) {
      for (const std::string name : {"grpo", "cispo", "rloo"}) {
        const auto got = evaluate<double>(
            {{.logp = {gap}, .behavior = {0}, .mask = {1}, .advantage = advantage}},
            algorithm_preset(name).loss);
        CHECK(got.sums.finite());
        CHECK(std::isfinite(got.logp_gradient[0][0]));
      }
    }
  }
}

TEST_CASE("empty and fully masked sequences add nothing") {
  for (const std::string name : {"grpo", "rloo", "dapo"}) {
    const auto config = algorithm_preset(name).loss;
    auto rows = uneven_rows();
    const auto want = evaluate(rows, config);
    rows.push_back({.advantage = 1});
    rows.push_back({.logp = {-1, -1}, .behavior = {-2, -2}, .mask = {0, 0}, .advantage = 1});
    const auto got = evaluate(rows, config);
    CHECK(got.sums.loss == want.sums.loss);
    CHECK(got.logp_gradient.back() == std::vector<double>{0, 0});
    const auto empty = evaluate<double>({rows.back()}, config);
    CHECK(empty.sums.loss == 0);
    CHECK(empty.sums.num_tokens == 0);
    CHECK(empty.sums.finite());
  }
}

TEST_CASE("losses of the parts of a minibatch add up to its loss") {
  for (const auto& config : differentiable_configs()) {
    const auto rows = uneven_rows();
    const auto whole = evaluate(rows, config);
    const auto tokens = counted_tokens(rows);
    const LossNormalizer normalizer(tokens, config);
    for (const std::size_t micro : {1, 2, 8}) {
      PolicyLossSums total;
      for (std::size_t first = 0; first < rows.size(); first += micro) {
        PolicyLossSums part;
        for (std::size_t i = first; i < std::min(first + micro, rows.size()); ++i) {
          std::vector<double> dlogp(rows[i].mask.size());
          std::vector<double> dentropy(rows[i].mask.size());
          sequence_loss<double>({.logp = rows[i].logp,
                                 .behavior_logp = rows[i].behavior,
                                 .ref_logp = rows[i].ref,
                                 .entropy = rows[i].entropy,
                                 .mask = rows[i].mask,
                                 .advantage = rows[i].advantage},
                                config,
                                normalizer.token_weight(tokens[i]),
                                {.logp = dlogp, .entropy = dentropy},
                                part);
          CHECK(dlogp == whole.logp_gradient[i]);
        }
        total += part;
      }
      CHECK(total.loss == doctest::Approx(whole.sums.loss).epsilon(1e-12));
      CHECK(total.num_tokens == whole.sums.num_tokens);
      CHECK(total.num_clipped_low == whole.sums.num_clipped_low);
      CHECK(total.ratio_max == whole.sums.ratio_max);
    }
  }
}

TEST_CASE("only advantage, KL and entropy make a sequence worth computing") {
  CHECK_FALSE(has_loss(0, {}));
  CHECK(has_loss(-0.1, {}));
  CHECK(has_loss(0, {.kl = {.coefficient = 0.1}}));
  CHECK(has_loss(0, {.entropy_coefficient = 0.1}));
}

TEST_CASE("spans of different lengths, and a missing reference, are errors") {
  const Row<double> row = {.logp = {-1, -1}, .behavior = {-1, -1}, .mask = {1, 1}, .advantage = 1};
  auto shorter = row;
  shorter.logp.pop_back();
  CHECK_THROWS_AS(evaluate<double>({shorter}, {}), Error);
  CHECK_THROWS_AS(evaluate<double>({row}, {.kl = {.coefficient = 1}}), Error);
  CHECK_THROWS_AS(evaluate<double>({row}, {.entropy_coefficient = 1}), Error);
}

}  // namespace
}  // namespace tandem::trainer
