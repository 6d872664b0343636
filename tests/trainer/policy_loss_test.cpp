#include "trainer/policy_loss.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "trainer/golden.h"
#include "trainer/policy_loss_rows.h"

namespace tandem::trainer {
namespace {

using test::differentiable_configs;
using test::evaluate;
using test::Row;
using test::uneven_rows;

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

}  // namespace
}  // namespace tandem::trainer
