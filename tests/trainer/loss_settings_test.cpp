#include "trainer/loss_settings.h"

#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::trainer {
namespace {

TEST_CASE("presets are what the recipe's documentation says") {
  const auto& grpo = algorithm_preset("grpo");
  CHECK(grpo.estimator == AdvantageEstimator::kGrpo);
  CHECK(grpo.loss.aggregation == Aggregation::kSeqMeanTokenMean);
  CHECK(grpo.loss.clip_low == 0.2);
  CHECK(grpo.loss.clip_high == 0.2);
  CHECK(grpo.loss.kl.coefficient == 0);
  CHECK(algorithm_preset("dr_grpo").estimator == AdvantageEstimator::kDrGrpo);
  CHECK(algorithm_preset("dr_grpo").loss.aggregation == Aggregation::kSeqMeanTokenSumNorm);
  CHECK(algorithm_preset("dapo").loss.clip_high == 0.28);
  CHECK(algorithm_preset("dapo").loss.aggregation == Aggregation::kTokenMean);
  CHECK(algorithm_preset("cispo").loss.objective == Objective::kCispo);
  CHECK(algorithm_preset("cispo").loss.clip_high == 4.0);
  CHECK(algorithm_preset("rloo").estimator == AdvantageEstimator::kRloo);
  CHECK(algorithm_preset("rloo").loss.ratio_level == RatioLevel::kSequence);
}

TEST_CASE("every preset is consistent once the longest completion is known") {
  for (const std::string name : {"grpo", "dr_grpo", "dapo", "cispo", "rloo"}) {
    CAPTURE(name);
    auto config = algorithm_preset(name).loss;
    CHECK(algorithm_preset(name).name == name);
    config.norm_length = 64;
    CHECK_NOTHROW(check_policy_loss(config));
  }
  CHECK_THROWS_WITH_AS(check_policy_loss(algorithm_preset("dr_grpo").loss),
                       doctest::Contains("rollout.max_new_tokens"),
                       UserError);
}

TEST_CASE("unknown names are errors that list the known ones") {
  CHECK_THROWS_WITH_AS(
      algorithm_preset("gpro"), doctest::Contains("grpo, dr_grpo, dapo, cispo, rloo"), UserError);
  CHECK_THROWS_WITH_AS(
      aggregation_from("mean"), doctest::Contains("seq-mean-token-sum-norm"), UserError);
  CHECK_THROWS_WITH_AS(kl_estimator_from("k4"), doctest::Contains("k1, abs, k2, k3"), UserError);
}

TEST_CASE("names and values go both ways") {
  for (const std::string name : {"token-mean",
                                 "seq-mean-token-mean",
                                 "seq-mean-token-sum",
                                 "seq-mean-token-sum-norm",
                                 "token-sum"}) {
    CHECK(name_of(aggregation_from(name)) == name);
  }
  for (const std::string name : {"k1", "abs", "k2", "k3", "k1+", "k3+"}) {
    CHECK(name_of(kl_estimator_from(name)) == name);
  }
  CHECK(name_of(kl_estimator_from("k3+")) == name_of(KlEstimator::kK3Plus));
}

TEST_CASE("settings out of range or without meaning are refused by their key") {
  const std::vector<std::pair<PolicyLossConfig, std::string>> cases = {
      {{.clip_low = -0.1}, "algorithm.clip_low"},
      {{.clip_low = 1.5}, "algorithm.clip_low"},
      {{.clip_high = -1}, "algorithm.clip_high"},
      {{.clip_dual = 0.5}, "algorithm.clip_dual"},
      {{.kl = {.coefficient = -1}}, "algorithm.kl.coefficient"},
      {{.ratio_level = RatioLevel::kSequence, .aggregation = Aggregation::kTokenMean},
       "algorithm.aggregation"},
      {{.objective = Objective::kCispo, .clip_dual = 3}, "algorithm.clip_dual"},
      {{.objective = Objective::kCispo, .ratio_level = RatioLevel::kSequence}, "algorithm.name"},
  };
  for (const auto& [config, key] : cases) {
    CAPTURE(key);
    CHECK_THROWS_WITH_AS(check_policy_loss(config), doctest::Contains(key.c_str()), UserError);
  }
}

}  // namespace
}  // namespace tandem::trainer
