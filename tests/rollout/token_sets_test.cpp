// Listed ids, bad words, bias and penalties against the rules written out for one id at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "rollout/token_sampler.h"

namespace tandem::rollout {
namespace {

using Ids = std::vector<TokenId>;

constexpr std::int64_t kNumIds = 50;

std::vector<float> make_logits(std::uint64_t seed) {
  std::vector<float> logits;
  for (std::uint64_t i = 0; i < kNumIds + 7; ++i) {  // the last 7 are padding
    logits.push_back(static_cast<float>(4 * random_uniform({.seed = seed, .draw = i}) - 2));
  }
  return logits;
}

bool is_listed(const Ids& ids, TokenId id) {
  return std::ranges::find(ids, id) != ids.end();
}

// The logit of `id` after everything that removes ids or moves probabilities.
float expected_logit(TokenId id,
                     const std::vector<float>& logits,
                     const SamplingParams& p,
                     const Ids& prompt,
                     const Ids& output) {
  bool removed =
      is_listed(p.banned_ids, id) || (!p.allowed_ids.empty() && !is_listed(p.allowed_ids, id));
  removed |=
      static_cast<std::int64_t>(output.size()) < p.min_new_tokens && is_listed(p.stop_ids, id);
  for (const Ids& word : p.bad_words) {
    bool just_occurred = output.size() + 1 >= word.size() && word.back() == id;
    for (std::size_t i = 0; just_occurred && i + 1 < word.size(); ++i) {
      just_occurred = output[output.size() + 1 - word.size() + i] == word[i];
    }
    removed |= just_occurred;
  }
  if (removed) {
    return -std::numeric_limits<float>::infinity();
  }
  float logit = logits[id];
  for (const auto& [biased, bias] : p.logit_bias) {
    logit += biased == id ? bias : 0.0F;
  }
  const auto count = static_cast<float>(std::ranges::count(output, id));
  if (is_listed(prompt, id) || count > 0) {
    const auto r = static_cast<float>(p.repetition_penalty);
    logit = logit > 0 ? logit / r : logit * r;
  }
  if (count > 0) {
    logit -=
        static_cast<float>(p.frequency_penalty) * count + static_cast<float>(p.presence_penalty);
  }
  return logit;
}

SamplingParams random_params(std::uint64_t seed) {
  std::uint64_t counter = 0;
  const auto below = [&](std::uint64_t n) {
    return random_below({.seed = seed, .draw = counter++, .sample = 1}, n);
  };
  const auto some_ids = [&](std::uint64_t count) {
    Ids ids;
    for (std::uint64_t i = 0; i < count; ++i) {
      ids.push_back(static_cast<TokenId>(below(kNumIds)));
    }
    return ids;
  };
  SamplingParams p;
  p.temperature = 0.7;
  if (below(2) == 0) {
    p.repetition_penalty = 1.4;
  }
  if (below(2) == 0) {
    p.frequency_penalty = 0.6;
    p.presence_penalty = -0.3;
  }
  if (below(2) == 0) {
    p.logit_bias = {{3, 1.5F}, {7, -2.0F}};
  }
  if (below(3) == 0) {
    p.allowed_ids = some_ids(12);
  }
  p.banned_ids = some_ids(below(6));
  p.bad_words = {{4}, {1, 2}, {2, 1, 2}};
  p.stop_ids = {9, 10};
  p.min_new_tokens = static_cast<std::int64_t>(below(8));
  return p;
}

TEST_CASE("what removes ids and what moves probabilities, against a loop over the ids") {
  TokenSampler sampler(kNumIds);
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const auto logits = make_logits(seed);
    const SamplingParams params = random_params(seed);
    const Ids prompt = {5, 6, 6, 30};
    const Ids output = {1, 6, 11, 2, 1};
    Ids context = prompt;
    context.insert(context.end(), output.begin(), output.end());
    double total = 0;
    double total_before = 0;
    for (TokenId id = 0; id < kNumIds; ++id) {
      const double logit = expected_logit(id, logits, params, prompt, output);
      total += std::exp(logit / 0.7);
      total_before += std::isinf(logit) ? 0 : std::exp(logits[id] / 0.7);
    }
    CAPTURE(seed);
    for (std::uint32_t draw = 0; draw < 20; ++draw) {
      const SampledToken token = sampler.sample(logits.data(),
                                                {.params = &params,
                                                 .context = context,
                                                 .num_generated = 5,
                                                 .key = {.seed = seed, .position = draw}});
      REQUIRE(token.finite);
      const double logit = expected_logit(token.id, logits, params, prompt, output);
      CHECK(token.sampled_logprob == doctest::Approx(logit / 0.7 - std::log(total)).epsilon(1e-4));
      CHECK(token.logprob ==
            doctest::Approx(logits[token.id] / 0.7 - std::log(total_before)).epsilon(1e-4));
      CHECK((token.sampled_logprob == token.logprob || params.shifts()));
      CHECK(token.allowed.contains(token.id));
    }
  }
}

TEST_CASE("the sets travel with the token: what is allowed, or what is banned") {
  const auto logits = make_logits(1);
  TokenSampler sampler(kNumIds);
  SamplingParams params;
  params.banned_ids = {8, 3, 8};
  params.bad_words = {{1, 2}, {4}};
  const Ids context = {1};
  SamplingInput input = {.params = &params, .context = context, .num_generated = 1};
  CHECK(sampler.sample(logits.data(), input).allowed.banned == Ids{2, 3, 4, 8});
  input.num_generated = 0;  // the 1 is of the prompt: nothing of the word was drawn
  CHECK(sampler.sample(logits.data(), input).allowed.banned == Ids{3, 4, 8});
  params.allowed_ids = {20, 4, 9};
  CHECK(sampler.sample(logits.data(), input).allowed.ids == Ids{9, 20});
  params.temperature = 0;
  const SampledToken greedy = sampler.sample(logits.data(), input);
  CHECK(greedy.id == (logits[9] >= logits[20] ? 9 : 20));
  CHECK(greedy.allowed.ids == Ids{9, 20});
}

TEST_CASE("a set without any id ends the sample with an error, not with id 0") {
  const auto logits = make_logits(2);
  TokenSampler sampler(kNumIds);
  SamplingParams params;
  params.allowed_ids = {4};
  params.bad_words = {{4}};
  for (const double temperature : {0.0, 1.0}) {
    params.temperature = temperature;
    CHECK_FALSE(sampler.sample(logits.data(), {.params = &params}).finite);
  }
}

TEST_CASE("a token's rank counts the ids at least as likely, and the likeliest come in order") {
  auto logits = make_logits(3);
  logits[11] = logits[12] = 3.0F;
  TokenSampler sampler(kNumIds);
  SamplingParams params;
  params.num_top_logprobs = 5;
  bool outside = false;
  for (std::uint32_t i = 0; i < 50; ++i) {
    const SampledToken token =
        sampler.sample(logits.data(), {.params = &params, .key = {.position = i}});
    std::int64_t rank = 0;
    double sum = 0;
    for (TokenId id = 0; id < kNumIds; ++id) {
      rank += logits[id] >= logits[token.id] ? 1 : 0;
    }
    CHECK(token.rank == rank);
    for (const auto& [id, logprob] : token.top) {
      sum += std::exp(logprob);
    }
    CHECK(sum <= 1.0 + 1e-6);
    CHECK(token.top[0].first == 11);
    CHECK(token.top.size() == (rank > 5 ? 6 : 5));
    CHECK((rank <= 5 || token.top.back().first == token.id));
    outside |= rank > 5;
  }
  CHECK(outside);
}

TEST_CASE("a given token is scored over all ids, whatever restricts what is drawn") {
  const auto logits = make_logits(4);
  TokenSampler sampler(kNumIds);
  SamplingParams free;
  free.num_top_logprobs = static_cast<std::int32_t>(kNumIds);
  free.temperature = 0.6;
  const auto top = sampler.sample(logits.data(), {.params = &free}).top;
  SamplingParams params;
  params.temperature = 0.6;
  params.top_k = 2;
  params.banned_ids = {7};
  params.num_prompt_logprobs = 3;
  for (const auto& [id, logprob] : top) {
    const SampledToken token = sampler.sample(logits.data(), {.params = &params, .given = id});
    CHECK(token.id == id);
    CHECK(token.logprob == logprob);
    CHECK(token.top.size() >= 3);
  }
}

TEST_CASE("settings outside of their range are refused by name") {
  const auto refusal = [](auto&& change) {
    SamplingParams params;
    change(params);
    try {
      params.validate();
      params.validate_ids(kNumIds);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal([](auto& p) { p.frequency_penalty = 2.5; }).starts_with("frequency_penalty"));
  CHECK(refusal([](auto& p) { p.presence_penalty = -3; }).starts_with("presence_penalty"));
  CHECK(refusal([](auto& p) { p.logit_bias = {{1, INFINITY}}; }).starts_with("logit_bias"));
  CHECK(refusal([](auto& p) { p.logit_bias = {{50, 1.0F}}; }).starts_with("logit_bias: id 50"));
  CHECK(refusal([](auto& p) { p.allowed_ids = {-1}; }).starts_with("allowed_token_ids: id -1"));
  CHECK(refusal([](auto& p) { p.allowed_ids.resize(5000); }).starts_with("allowed_token_ids has"));
  CHECK(refusal([](auto& p) { p.banned_ids = {99}; }).starts_with("banned_token_ids"));
  CHECK(refusal([](auto& p) { p.banned_ids.resize(5000); }).starts_with("banned_token_ids"));
  CHECK(refusal([](auto& p) { p.bad_words = {{}}; }).starts_with("bad_words"));
  CHECK(refusal([](auto& p) { p.bad_words = {{1, 50}}; }).starts_with("bad_words: id 50"));
  CHECK(refusal([](auto& p) { p.num_prompt_logprobs = -2; }).starts_with("num_prompt_logprobs"));
  CHECK(refusal([](auto&) {}).empty());
}

}  // namespace
}  // namespace tandem::rollout
