#include "trainer/advantages.h"

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/golden.h"

namespace tandem::trainer {
namespace {

using Rewards = std::vector<std::optional<double>>;

constexpr auto kGrpo = AdvantageEstimator::kGrpo;
constexpr auto kDrGrpo = AdvantageEstimator::kDrGrpo;
constexpr auto kRloo = AdvantageEstimator::kRloo;

std::vector<double> advantages(const Rewards& rewards, const AdvantageConfig& config) {
  return group_advantages(rewards, config).advantages;
}

void check_close(const std::vector<double>& got, const std::vector<double>& want, double tol) {
  REQUIRE(got.size() == want.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got[i] - want[i]) <= tol);
  }
}

// The reference repeats a sequence's advantage over its tokens and multiplies by the mask.
void check_golden(const std::string& name, const std::string& index, AdvantageEstimator estimator) {
  CAPTURE(name);
  const auto golden = test::golden_json("rl/verl_core_algos.json");
  const auto& inputs = golden.at("inputs");
  const auto rewards = test::rows_of(inputs.at("token_level_rewards"));
  const auto mask = test::rows_of(inputs.at("response_mask"));
  const auto want = test::rows_of(golden.at("advantages").at(name));
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t row = 0; row < rewards.size(); ++row) {
    groups[inputs.at(index).at(row).get<std::string>()].push_back(row);
  }
  for (const auto& [group, members] : groups) {
    CAPTURE(group);
    Rewards scores;
    for (const auto row : members) {
      scores.emplace_back(0.0);
      for (const double r : rewards[row]) {
        *scores.back() += r;
      }
    }
    const auto got =
        advantages(scores, {.estimator = estimator, .epsilon = 1e-6, .allow_singleton = true});
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t t = 0; t < mask[members[i]].size(); ++t) {
        CHECK(std::abs(got[i] * mask[members[i]][t] - want[members[i]][t]) <= 1e-9);
      }
    }
  }
}

TEST_CASE("advantages equal the reference's, group of one included") {
  const std::string grpo = " (unbiased std; singleton group: mean 0 std 1)";
  for (const std::string index : {"index", "index2"}) {
    check_golden("grpo " + index + " norm_std=True eps=1e-6" + grpo, index, kGrpo);
    check_golden("grpo " + index + " norm_std=False eps=1e-6" + grpo, index, kDrGrpo);
    check_golden("rloo " + index, index, kRloo);
  }
}

TEST_CASE("worked numbers of each estimator") {
  const Rewards half = {1.0, 0.0, 0.0, 1.0};
  check_close(advantages(half, {.estimator = kGrpo, .epsilon = 1e-6}),
              {0.8660239, -0.8660239, -0.8660239, 0.8660239},
              1e-7);
  check_close(
      advantages(half, {.estimator = kGrpo}), {0.8658754, -0.8658754, -0.8658754, 0.8658754}, 1e-7);
  const Rewards one = {1.0, 0.0, 0.0, 0.0, 0.0};
  check_close(advantages(one, {.estimator = kGrpo, .epsilon = 1e-6}),
              {1.7888504, -0.4472126, -0.4472126, -0.4472126, -0.4472126},
              1e-6);
  check_close(advantages(one, {.estimator = kDrGrpo}), {0.8, -0.2, -0.2, -0.2, -0.2}, 1e-12);
  check_close(advantages(one, {.estimator = kRloo}), {1, -0.25, -0.25, -0.25, -0.25}, 1e-12);
  check_close(advantages({1.0, 1.00001}, {.estimator = kGrpo, .epsilon = 1e-6}),
              {-0.6194967, 0.6194967},
              1e-6);
}

TEST_CASE("equal rewards give exactly zero, though their mean rounds") {
  // (0.1 + 0.1 + 0.1) / 3 is not 0.1 in double.
  const auto group = group_advantages(Rewards{0.1, 0.1, 0.1}, {});
  CHECK(group.advantages == std::vector<double>{0, 0, 0});
  CHECK(group.zero_std);
  CHECK(group.std == 0);
  CHECK(group.mean == 0.1);
  CHECK_FALSE(group_advantages(Rewards{0.1, 0.1, 0.2}, {}).zero_std);
}

TEST_CASE("a sequence without a reward leaves the baseline and gets no advantage") {
  const auto group =
      group_advantages(Rewards{1.0, std::nullopt, std::nullopt, 0.0}, {.estimator = kDrGrpo});
  CHECK(group.advantages == std::vector<double>{0.5, 0, 0, -0.5});
  CHECK(group.num_defined == 2);
  CHECK(group.std == doctest::Approx(std::sqrt(0.5)));
  const auto rloo = advantages({1.0, std::nullopt, 0.0, 0.0}, {.estimator = kRloo});
  CHECK(rloo == std::vector<double>{1, 0, -0.5, -0.5});
}

TEST_CASE("a group with no or one reward has nothing to compare") {
  for (const Rewards& rewards : {Rewards(4), Rewards{0.7, std::nullopt, std::nullopt}}) {
    for (const bool allow : {false, true}) {
      const auto group = group_advantages(rewards, {.allow_singleton = allow});
      CHECK(group.advantages == std::vector<double>(rewards.size(), 0.0));
      CHECK(group.zero_std);
    }
  }
}

TEST_CASE("a group of one is refused with the key to change") {
  CHECK_THROWS_WITH_AS(group_advantages(Rewards{1.0}, {.estimator = kRloo}),
                       doctest::Contains("rollout.samples_per_prompt"),
                       UserError);
  CHECK(advantages({0.5}, {.estimator = kGrpo, .epsilon = 1, .allow_singleton = true}) ==
        std::vector<double>{0.25});
  CHECK(advantages({std::nullopt}, {.allow_singleton = true}) == std::vector<double>{0.0});
}

TEST_CASE("what is not a number never becomes an advantage") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(group_advantages(Rewards{nan, 0.0}, {}), Error);
  CHECK_THROWS_AS(group_advantages(Rewards{0.0, inf}, {}), Error);
  CHECK_THROWS_AS(group_advantages({}, {}), Error);
}

TEST_CASE("rewards are a weighted sum over the functions that apply") {
  const std::vector<double> weights = {1, 0.5};
  CHECK(combine_rewards(Rewards{2.0, 3.0}, weights) == 3.5);
  CHECK(combine_rewards(Rewards{std::nullopt, 3.0}, weights) == 1.5);
  CHECK(combine_rewards(Rewards{0.0, std::nullopt}, weights) == 0.0);
  CHECK_FALSE(combine_rewards(Rewards{std::nullopt, std::nullopt}, weights).has_value());
  CHECK_THROWS_AS(combine_rewards(Rewards{1.0}, weights), Error);
}

}  // namespace
}  // namespace tandem::trainer
