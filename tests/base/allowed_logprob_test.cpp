#include "base/allowed_logprob.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

namespace tandem {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST_CASE("probabilities of a listed set add up to one at any temperature") {
  const std::vector<float> logits = {-3.5F, 0.25F, 2.0F, 1.75F};
  for (const double temperature : {0.5, 0.7, 1.0, 2.0}) {
    const float t = inverse_temperature(temperature);
    const LogSumExp over = reduce_listed(logits, t);
    double sum = 0;
    for (const float logit : logits) {
      sum += std::exp(logprob_of(logit, t, over));
    }
    CHECK(sum == doctest::Approx(1.0));
  }
}

TEST_CASE("worked example: two ids, one twice as likely") {
  // logits log 2 and log 4 at temperature 1: 1/3 and 2/3; at temperature 0.5: 1/5 and 4/5
  const std::vector<float> logits = {std::log(2.0F), std::log(4.0F)};
  const LogSumExp warm = reduce_listed(logits, 1.0F);
  CHECK(logprob_of(logits[0], 1.0F, warm) == doctest::Approx(std::log(1.0 / 3)));
  const float t = inverse_temperature(0.5);
  const LogSumExp cold = reduce_listed(logits, t);
  CHECK(logprob_of(logits[1], t, cold) == doctest::Approx(std::log(0.8)));
}

TEST_CASE("a greedy temperature reports log-probabilities of temperature 1") {
  CHECK(inverse_temperature(0) == 1.0F);
  CHECK(inverse_temperature(1e-5) == 1.0F);
  CHECK(inverse_temperature(0.1) == 10.0F);
}

TEST_CASE("an id of -inf adds nothing, a set of only -inf has the sum 0") {
  CHECK(reduce_listed(std::vector<float>{1.0F, -kInfinity}, 1.0F) == LogSumExp{1.0F, 1.0F});
  CHECK(reduce_listed(std::vector<float>{-kInfinity}, 1.0F) == LogSumExp{-kInfinity, 0.0F});
  CHECK(reduce_listed({}, 1.0F) == LogSumExp{-kInfinity, 0.0F});
}

TEST_CASE("a set of one id has the log-probability 0") {
  const std::vector<float> logits = {-12.5F};
  CHECK(logprob_of(-12.5F, 1.0F, reduce_listed(logits, 1.0F)) == 0.0F);
}

}  // namespace
}  // namespace tandem
