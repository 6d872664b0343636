#include "app/rl/validation.h"

#include <doctest/doctest.h>

namespace tandem::app {
namespace {

// The two rewards of all cases: "a", the accuracy, and "b", which counts half.
std::vector<rewards::RewardConfig> configs() {
  std::vector<rewards::RewardConfig> both(2);
  both[0].name = "a";
  both[1].name = "b";
  both[1].weight = 0.5;
  return both;
}

struct Sample {
  const char* text;
  std::optional<double> a, b;
};

Group group_of(const std::string& source, std::initializer_list<Sample> samples) {
  Group group;
  group.prompt.source = source;
  for (const Sample& sample : samples) {
    Trajectory trajectory;
    trajectory.text = sample.text;
    trajectory.rewards["a"].value = sample.a;
    trajectory.rewards["b"].value = sample.b;
    group.trajectories.push_back(trajectory);
  }
  return group;
}

void check(const Metrics& metrics, const Metrics& expected) {
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    REQUIRE(metrics.count(name) == 1);
    CHECK(metrics.at(name) == doctest::Approx(value));
  }
  CHECK(metrics.size() == expected.size());
}

TEST_CASE("mean, best and majority of n samples, by source and over all") {
  const std::vector<Group> groups = {
      // Rewards 1, 1, 0 + 4/2 = 2, 0; "3" has most votes and its first sample counts 1.
      group_of("sums", {{"3", 1, 0}, {" 3\n", 1, 0}, {"4", 0, 4}, {"5", 0, {}}}),
      // Rewards 0, 1, 0, 1; of two equally frequent texts the first is the majority's: 0.
      group_of("sums", {{"7", 0, {}}, {"8", 1, {}}, {"7", 0, {}}, {"8", 1, {}}}),
      // Rewards 1, 0, 0 and none, which counts 0; "y" is the majority's: 0.
      group_of("words", {{"x", 1, {}}, {"y", 0, {}}, {"y", 0, {}}, {"z", {}, {}}})};
  check(validation_metrics(groups, configs()),
        {{"val/sums/reward/mean@4", (1 + 0.5) / 2},
         {"val/sums/reward/best@4", (2 + 1) / 2.0},
         {"val/sums/reward/maj@4", (1 + 0) / 2.0},
         {"val/sums/acc/mean@4", (0.5 + 0.5) / 2},
         {"val/sums/acc/best@4", 1},
         {"val/sums/acc/maj@4", 0.5},
         {"val/words/reward/mean@4", 0.25},
         {"val/words/reward/best@4", 1},
         {"val/words/reward/maj@4", 0},
         {"val/words/acc/mean@4", 0.25},
         {"val/words/acc/best@4", 1},
         {"val/words/acc/maj@4", 0},
         {"val/all/reward/mean@4", (1 + 0.5 + 0.25) / 3},
         {"val/all/reward/best@4", (2 + 1 + 1) / 3.0},
         {"val/all/reward/maj@4", (1 + 0 + 0) / 3.0},
         {"val/all/acc/mean@4", (0.5 + 0.5 + 0.25) / 3},
         {"val/all/acc/best@4", 1},
         {"val/all/acc/maj@4", (1 + 0 + 0) / 3.0}});
  CHECK(validation_reward(validation_metrics(groups, configs())) ==
        doctest::Approx((1 + 0.5 + 0.25) / 3));
}

TEST_CASE("one sample of one source has a mean alone") {
  const std::vector<Group> groups = {group_of("sums", {{"3", 1, 1}}),
                                     group_of("sums", {{"3", 0, 1}})};
  const auto metrics = validation_metrics(groups, configs());
  check(metrics, {{"val/sums/reward/mean@1", (1.5 + 0.5) / 2}, {"val/sums/acc/mean@1", 0.5}});
  CHECK(validation_reward(metrics) == 1.0);
  CHECK_FALSE(validation_reward({{"loss", 1.0}}));
}

}  // namespace
}  // namespace tandem::app
