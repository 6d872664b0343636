#include "rollout/token_sampler.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::rollout {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
using Ids = std::vector<TokenId>;

std::vector<float> random_logits(std::int64_t n, std::uint64_t seed = 0) {
  std::vector<float> logits(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(
        2 * random_normal({.seed = seed, .position = static_cast<std::uint32_t>(i)}));
  }
  return logits;
}

SampledToken sample(const std::vector<float>& logits,
                    const SamplingParams& params,
                    std::uint32_t position = 0,
                    std::int64_t num_generated = 0) {
  TokenSampler sampler(static_cast<std::int64_t>(logits.size()));
  return sampler.sample(
      logits.data(),
      {.params = &params, .num_generated = num_generated, .key = {.position = position}});
}

// Chi-square of `draws` tokens against the probabilities of the allowed set.
double chi_square(const std::vector<float>& logits, const SamplingParams& params, int draws) {
  TokenSampler sampler(static_cast<std::int64_t>(logits.size()));
  std::vector<int> counts(logits.size());
  AllowedSet allowed;
  for (int i = 0; i < draws; ++i) {
    const SampledToken token = sampler.sample(
        logits.data(), {.params = &params, .key = {.position = static_cast<std::uint32_t>(i)}});
    ++counts[token.id];
    allowed = token.allowed;
  }
  std::vector<double> weights(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    weights[i] =
        allowed.contains(static_cast<TokenId>(i)) ? std::exp(logits[i] / params.temperature) : 0.0;
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double chi = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double expected = draws * weights[i] / total;
    CHECK((weights[i] > 0 || counts[i] == 0));
    if (expected > 0) {
      chi += (counts[i] - expected) * (counts[i] - expected) / expected;
    }
  }
  return chi;
}

TEST_CASE("draws follow the renormalised distribution of what the filters keep") {
  const std::vector<float> logits = {0.3F, 1.2F, -0.7F, 2.1F, 0.0F, 1.9F, -1.0F, 0.8F};
  constexpr int kDraws = 100000;
  // Bounds: the 0.9999 quantiles of chi-square with at most 7 degrees of freedom are below 30.
  CHECK(chi_square(logits, {}, kDraws) < 30);
  CHECK(chi_square(logits, {.temperature = 0.7, .top_p = 0.8}, kDraws) < 30);
  CHECK(chi_square(logits, {.top_k = 3}, kDraws) < 30);
  CHECK(chi_square(logits, {.temperature = 1.5, .min_p = 0.2}, kDraws) < 30);
}

TEST_CASE("draws over several chunks of the vocabulary reach every chunk as often as they should") {
  std::vector<float> logits(3000, -kInfinity);
  logits[3] = 0.0F;
  logits[1500] = std::log(2.0F);
  logits[2999] = std::log(3.0F);
  CHECK(chi_square(logits, {}, 20000) < 20);
}

TEST_CASE("greedy takes the most likely id, the lowest of equals, at the temperature's border") {
  CHECK(sample({1, 5, 5, 2}, {.temperature = 0}).id == 1);
  CHECK(sample({1, 5, 5, 2}, {.temperature = 1e-5, .top_k = 2}).id == 1);
  const SampledToken token = sample({0, std::log(3.0F)}, {.temperature = 0});
  CHECK(token.logprob == doctest::Approx(std::log(0.75)));  // of temperature 1
  CHECK(token.allowed.is_all());
}

TEST_CASE("the log-probability is at the sampling temperature and over the allowed set") {
  const std::vector<float> logits = {std::log(1.0F), std::log(2.0F), std::log(3.0F)};
  const SampledToken cold = sample(logits, {.temperature = 0.5});
  const double squares[] = {1, 4, 9};
  CHECK(cold.logprob == doctest::Approx(std::log(squares[cold.id] / 14)));
  const SampledToken two = sample(logits, {.top_k = 2});
  CHECK(two.allowed.ids == Ids{1, 2});
  CHECK(two.logprob == doctest::Approx(std::log(two.id == 1 ? 0.4 : 0.6)));
}

TEST_CASE("an allowed set of one id has the log-probability 0") {
  const SampledToken token = sample(random_logits(50), {.top_k = 1});
  CHECK(token.allowed.ids == Ids{token.id});
  CHECK(token.logprob == 0.0F);
}

TEST_CASE("a trainer that normalises over the token's set gets the same bits") {
  const auto logits = random_logits(3000);
  const VocabMath math = portable_vocab_math();
  for (std::uint32_t i = 0; i < 20; ++i) {
    for (const SamplingParams& params : {SamplingParams{.temperature = 0.7},
                                         SamplingParams{.temperature = 0.7, .top_p = 0.5},
                                         SamplingParams{.min_new_tokens = 1, .stop_ids = {5, 2}}}) {
      const SampledToken token = sample(logits, params, i);
      const float factor = inverse_temperature(params.temperature);
      std::vector<float> listed;
      for (const TokenId id : token.allowed.ids) {
        listed.push_back(logits[id]);
      }
      std::vector<float> row = logits;
      for (const TokenId id : token.allowed.banned) {
        row[id] = kBannedLogit;
      }
      const LogSumExp over = listed.empty() ? math.reduce(row.data(), 3000, factor, nullptr)
                                            : reduce_listed(listed, factor);
      CHECK(token.logprob == logprob_of(logits[token.id], factor, over));
    }
  }
}

TEST_CASE("padding behind the tokenizer's ids is never drawn and not in the sum") {
  std::vector<float> logits = random_logits(128);
  for (std::size_t i = 100; i < 128; ++i) {
    logits[i] = i % 2 == 0 ? 50.0F : std::numeric_limits<float>::quiet_NaN();
  }
  TokenSampler sampler(100);
  const std::vector<float> short_row(logits.begin(), logits.begin() + 100);
  for (const SamplingParams& params :
       {SamplingParams{}, SamplingParams{.temperature = 0}, SamplingParams{.top_k = 5}}) {
    for (std::uint32_t i = 0; i < 50; ++i) {
      const SampledToken token =
          sampler.sample(logits.data(), {.params = &params, .key = {.position = i}});
      CHECK(token.finite);
      CHECK(token.id < 100);
      CHECK(token.logprob == sample(short_row, params, i).logprob);
    }
  }
}

TEST_CASE("before min_new_tokens all stop ids are banned, and the set says so") {
  const std::vector<float> logits = {0, 30, 1, 40};
  const SamplingParams params{.min_new_tokens = 2, .stop_ids = {3, 1, 3, 77}};
  const SampledToken early = sample(logits, params, 0, 1);
  CHECK((early.id == 0 || early.id == 2));
  CHECK(early.allowed == AllowedSet{.ids = {}, .banned = {1, 3}});
  CHECK(early.logprob == doctest::Approx(early.id == 0 ? -1.313262 : -0.313262));
  CHECK(sample(logits, params, 0, 2).id == 3);
  CHECK(sample(logits, params, 0, 2).allowed.is_all());

  SamplingParams ignoring = params;
  ignoring.ignore_eos = true;
  CHECK(sample(logits, ignoring, 0, 0).id == 3);

  SamplingParams filtered = params;
  filtered.top_k = 2;
  CHECK(sample(logits, filtered, 0, 0).allowed == AllowedSet{.ids = {0, 2}, .banned = {}});
}

TEST_CASE("equal logits at the border of top-k are cut in id order") {
  CHECK(sample({1, 1, 1, 1}, {.top_k = 2}).allowed.ids == Ids{0, 1});
  CHECK(sample({0, 2, 1, 1}, {.top_k = 2}).allowed.ids == Ids{1, 2});
}

TEST_CASE("top-p counts on what top-k left, min-p on what top-p left") {
  // probabilities .4 .3 .2 .1; top-k 2 leaves .571 .429, of which .571 reaches .55
  const std::vector<float> logits = {
      std::log(0.4F), std::log(0.3F), std::log(0.2F), std::log(0.1F)};
  CHECK(sample(logits, {.top_p = 0.55, .top_k = 2}).allowed.ids == Ids{0});
  CHECK(sample(logits, {.top_p = 0.55}).allowed.ids == Ids{0, 1});
  CHECK(sample(logits, {.top_p = 0.95, .min_p = 0.6}).allowed.ids == Ids{0, 1});
  CHECK(sample(logits, {.top_p = 0.0}).allowed.ids == Ids{0});
}

TEST_CASE("impossible ids are outside of every listed set") {
  const std::vector<float> logits = {-kInfinity, 1, -kInfinity, 2};
  CHECK(sample(logits, {.top_k = 3}).allowed.ids == Ids{1, 3});
  CHECK(sample(logits, {.top_p = 0.999}).allowed.ids == Ids{1, 3});
  for (std::uint32_t i = 0; i < 100; ++i) {
    CHECK(sample(logits, {}, i).id % 2 == 1);
  }
}

TEST_CASE("a row with NaN, +inf or only -inf gives no token") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector<float>{0, nan, 1},
                                           std::vector<float>{nan, 0, 0},
                                           std::vector<float>{0, kInfinity},
                                           std::vector<float>{-kInfinity, -kInfinity}}) {
    for (const SamplingParams& params :
         {SamplingParams{}, SamplingParams{.temperature = 0}, SamplingParams{.top_k = 1}}) {
      const SampledToken token = sample(logits, params);
      CHECK_FALSE(token.finite);
      CHECK(token.id == -1);
    }
  }
  // a NaN that a ban would hide, and a ban of all that is possible
  CHECK_FALSE(sample({nan, 1}, {.min_new_tokens = 1, .stop_ids = {0}}).finite);
  CHECK_FALSE(sample({1, -kInfinity}, {.min_new_tokens = 1, .stop_ids = {0}}).finite);
}

TEST_CASE("a filter that keeps more than 4,096 ids is refused by its name") {
  const std::vector<float> flat(9000, 0.0F);
  CHECK_THROWS_WITH_AS(
      sample(flat, {.top_p = 0.9}),
      "top_p = 0.9 keeps more than 4096 ids: lower top_p, raise min_p, or set top_k",
      UserError);
  CHECK_THROWS_AS(sample(flat, {.min_p = 0.5}), UserError);
  CHECK(sample(flat, {.top_p = 0.4}).allowed.ids.size() == 3600);
  CHECK(sample(flat, {.top_p = 0.9, .top_k = 4096}).allowed.ids.size() == 3687);
}

TEST_CASE(
    "the repetition penalty moves the draw of every id seen, and leaves the log-probability") {
  const std::vector<float> logits = {2, 3, -1, -2};
  const SamplingParams params{.temperature = 0, .repetition_penalty = 4};
  TokenSampler sampler(4);
  const Ids context = {1, 1, 1};
  const SampledToken token = sampler.sample(logits.data(), {.params = &params, .context = context});
  CHECK(token.id == 0);  // 3 / 4 < 2; counted once, not three times
  CHECK(token.logprob ==
        sample(logits, {.top_k = 0}).logprob + logits[0] - logits[sample(logits, {.top_k = 0}).id]);
  // a negative logit is multiplied
  const std::vector<float> negative = {-1, -2};
  const Ids first = {0};
  CHECK(
      sampler
          .sample(std::vector<float>{-1, -2, -9, -9}.data(), {.params = &params, .context = first})
          .id == 1);
}

TEST_CASE("a draw depends on its key alone, and every part of the key matters") {
  const auto logits = random_logits(5000);
  TokenSampler sampler(5000);
  const SamplingParams params;
  const auto draw = [&](const RandomKey& key) {
    return sampler.sample(logits.data(), {.params = &params, .key = key}).id;
  };
  const TokenId first = draw({.seed = 1, .draw = 2, .sample = 3, .position = 4});
  draw({.seed = 9});
  CHECK(draw({.seed = 1, .draw = 2, .sample = 3, .position = 4}) == first);
  int num_same = 0;
  for (std::uint32_t i = 0; i < 100; ++i) {
    num_same += draw({.sample = i}) == draw({.position = i + 1}) ? 1 : 0;
    num_same += draw({.seed = i}) == draw({.seed = i + 1}) ? 1 : 0;
  }
  CHECK(num_same < 20);
}

TEST_CASE("top log-probabilities come in order, add up to at most one, and include the token") {
  const auto logits = random_logits(400);
  for (std::uint32_t i = 0; i < 50; ++i) {
    const SampledToken token = sample(logits, {.num_top_logprobs = 4}, i);
    REQUIRE((token.top.size() == 4 || token.top.size() == 5));
    double sum = 0;
    bool found = false;
    for (std::size_t k = 0; k < token.top.size(); ++k) {
      CHECK((k == 0 || token.top[k].second <= token.top[k - 1].second));
      sum += std::exp(token.top[k].second);
      found |= token.top[k] == std::pair(token.id, token.logprob);
    }
    CHECK(sum <= 1.0 + 1e-6);
    CHECK(found);
  }
  const SampledToken kept = sample(logits, {.top_k = 3, .num_top_logprobs = 10});
  REQUIRE(kept.top.size() == 3);
  CHECK(std::exp(kept.top[0].second) + std::exp(kept.top[1].second) +
            std::exp(kept.top[2].second) ==
        doctest::Approx(1.0));
}

TEST_CASE("without settings for top log-probabilities none are made") {
  CHECK(sample(random_logits(10), {}).top.empty());
}

}  // namespace
}  // namespace tandem::rollout
