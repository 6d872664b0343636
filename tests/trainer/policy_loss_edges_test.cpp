// The policy losses at their edges: masks, non-finite numbers, empty and split minibatches.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/loss_normalizer.h"
#include "trainer/policy_loss.h"
#include "trainer/policy_loss_rows.h"

namespace tandem::trainer {
namespace {

using test::counted_tokens;
using test::differentiable_configs;
using test::evaluate;
using test::Row;
using test::uneven_rows;

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
