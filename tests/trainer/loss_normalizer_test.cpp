#include "trainer/loss_normalizer.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/golden.h"

namespace tandem::trainer {
namespace {

// Sum of masked token losses with the weights of the normalizer.
double aggregate(const test::Rows& loss, const test::Rows& mask, const PolicyLossConfig& config) {
  std::vector<std::int64_t> tokens;
  for (const auto& row : mask) {
    std::int64_t n = 0;
    for (const double m : row) {
      n += m != 0 ? 1 : 0;
    }
    tokens.push_back(n);
  }
  const LossNormalizer normalizer(tokens, config);
  double sum = 0;
  for (std::size_t i = 0; i < loss.size(); ++i) {
    for (std::size_t t = 0; t < loss[i].size(); ++t) {
      sum += mask[i][t] * loss[i][t] * normalizer.token_weight(tokens[i]);
    }
  }
  return sum;
}

TEST_CASE("every aggregation equals the reference's, a fully masked row included") {
  const auto golden = test::golden_json("rl/verl_core_algos.json");
  for (const std::string section : {"agg", "agg_with_empty_row"}) {
    const auto& cases = golden.at(section);
    const auto loss = test::rows_of(cases.at("inputs").at("loss_mat"));
    const auto mask = test::rows_of(cases.at("inputs").at("loss_mask"));
    int compared = 0;
    for (const auto& [name, want] : cases.items()) {
      if (name == "inputs") {
        continue;
      }
      CAPTURE(section);
      CAPTURE(name);
      const PolicyLossConfig config = {.aggregation = aggregation_from(name), .norm_length = 3};
      // The reference's row mean divides by n + 1e-8.
      const double tolerance = name == "seq-mean-token-mean" ? 5e-8 : 1e-9;
      CHECK(std::abs(aggregate(loss, mask, config) - want.get<double>()) <= tolerance);
      ++compared;
    }
    CHECK(compared == 5);
  }
}

TEST_CASE("masked means equal torchtune's") {
  const auto golden = test::golden_json("rl/torchtune_cases.json");
  const auto& all = golden.at("masked_mean");
  const test::Rows values = {all.at("x").get<std::vector<double>>()};
  const test::Rows mask = {all.at("mask").get<std::vector<double>>()};
  CHECK(aggregate(values, mask, {.aggregation = Aggregation::kTokenMean}) ==
        doctest::Approx(all.at("mean").get<double>()));
  // The mean over rows of each row's mean.
  const auto& rows = golden.at("masked_mean_rows");
  const auto means = rows.at("mean").get<std::vector<double>>();
  REQUIRE(means.size() == 2);
  CHECK(aggregate(test::rows_of(rows.at("x")),
                  test::rows_of(rows.at("mask")),
                  {.aggregation = Aggregation::kSeqMeanTokenMean}) ==
        doctest::Approx((means[0] + means[1]) / 2));
}

TEST_CASE("rows of length 2 and 4 with losses 1 and 3") {
  const test::Rows loss = {{1, 1, 9, 9}, {3, 3, 3, 3}};
  const test::Rows mask = {{1, 1, 0, 0}, {1, 1, 1, 1}};
  const auto value = [&](Aggregation a) {
    return aggregate(loss, mask, {.aggregation = a, .norm_length = 4});
  };
  // 14 / 6; averaging per micro-batch of one row would give 2.
  CHECK(value(Aggregation::kTokenMean) == doctest::Approx(14.0 / 6));
  CHECK(value(Aggregation::kSeqMeanTokenSum) == doctest::Approx(7));
  CHECK(value(Aggregation::kSeqMeanTokenMean) == doctest::Approx(2));
  CHECK(value(Aggregation::kSeqMeanTokenSumNorm) == doctest::Approx(1.75));
}

TEST_CASE("a minibatch without a token is empty and divides by nothing") {
  for (const Aggregation a : {Aggregation::kTokenMean,
                              Aggregation::kSeqMeanTokenMean,
                              Aggregation::kSeqMeanTokenSum,
                              Aggregation::kSeqMeanTokenSumNorm,
                              Aggregation::kTokenSum}) {
    const std::vector<std::int64_t> tokens = {0, 0};
    const LossNormalizer normalizer(tokens, {.aggregation = a, .norm_length = 8});
    CHECK(normalizer.empty());
    CHECK(normalizer.num_sequences() == 0);
    CHECK(normalizer.token_weight(0) == 0);
  }
}

TEST_CASE("denominators count trainable tokens only: 4 of an ended row, none of a masked cut one") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::uint8_t> ended = {1, 1, 1, 1};
  const std::vector<std::uint8_t> cut = {0, 0, 0, 0};
  const std::vector<float> behavior = {-1, -1, -1, -1};
  const std::vector<std::int64_t> tokens = {num_counted_tokens<float>(ended, behavior),
                                            num_counted_tokens<float>(cut, behavior)};
  const LossNormalizer normalizer(tokens, {.aggregation = Aggregation::kTokenMean});
  CHECK(normalizer.num_tokens() == 4);
  CHECK(normalizer.num_sequences() == 1);
  CHECK(normalizer.token_weight(4) == 0.25);
  const std::vector<float> broken = {-1, nan, -1, -std::numeric_limits<float>::infinity()};
  CHECK(num_counted_tokens<float>(ended, broken) == 2);
  CHECK(num_counted_tokens<float>({}, {}) == 0);
}

TEST_CASE("lengths that cannot be are errors") {
  const std::vector<std::int64_t> negative = {3, -1};
  CHECK_THROWS_AS(LossNormalizer(negative, {}), Error);
  const std::vector<std::int64_t> tokens = {3, 4};
  CHECK_THROWS_AS((void)LossNormalizer(tokens, {}).token_weight(8), Error);
}

}  // namespace
}  // namespace tandem::trainer
