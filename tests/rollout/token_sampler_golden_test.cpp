// The single-step cases of llama.cpp's sampler tests:
// tests/golden/sampling/llama_cpp_sampling.json.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "rollout/token_sampler.h"

namespace tandem::rollout {
namespace {

// The settings of a case, or nothing where it is about a sampler or a value that we do not have.
std::optional<SamplingParams> params_of(const nlohmann::json& test) {
  SamplingParams params;
  const std::string sampler = test["sampler"];
  if (sampler == "temp") {
    params.temperature = test["temp"];
  } else if (sampler == "top_k") {
    params.top_k = test["k"];
  } else if (sampler == "top_p") {
    params.top_p = test["p"];
  } else if (sampler == "min_p" && test["p"] <= 1.0) {
    params.min_p = test["p"];
  } else if (sampler == "penalties") {
    params.repetition_penalty = test["repeat"];
    params.frequency_penalty = test["frequency"];
    params.presence_penalty = test["presence"];
  } else {
    return std::nullopt;
  }
  return params;
}

// The probabilities of one draw, as the sampler reports them, likeliest first. Those of a greedy
// draw and of one with a penalty are shares of many draws, since the report does not cover them.
std::vector<double> probabilities(const std::vector<float>& logits,
                                  SamplingParams params,
                                  const std::vector<TokenId>& context) {
  const auto num_ids = static_cast<std::int64_t>(logits.size());
  const bool reported = !params.greedy() && !params.shifts();
  const std::uint32_t num_draws = reported ? 1 : 20000;
  params.num_top_logprobs = static_cast<std::int32_t>(num_ids);
  TokenSampler sampler(num_ids);
  std::map<TokenId, double> shares;
  for (std::uint32_t i = 0; i < num_draws; ++i) {
    const SampledToken token =
        sampler.sample(logits.data(),
                       {.params = &params,
                        .context = context,
                        .num_generated = static_cast<std::int64_t>(context.size()),
                        .key = {.position = i}});
    if (!reported) {
      shares[token.id] += 1.0 / num_draws;
      continue;
    }
    for (const auto& [id, logprob] : token.top) {
      shares[id] = std::exp(logprob);
    }
  }
  std::vector<double> sorted;
  for (const auto& [id, share] : shares) {
    sorted.push_back(share);
  }
  std::ranges::sort(sorted, std::greater<>());
  return sorted;
}

std::vector<double> possible(const nlohmann::json& expected) {
  std::vector<double> sorted;
  for (const double p : expected) {
    if (p > 0) {
      sorted.push_back(p);
    }
  }
  std::ranges::sort(sorted, std::greater<>());
  return sorted;
}

TEST_CASE("temperature, top-k, top-p, min-p and penalties keep and weigh as llama.cpp's do") {
  std::ifstream stream("tests/golden/sampling/llama_cpp_sampling.json");
  const auto golden = nlohmann::json::parse(stream);
  int num_run = 0;
  for (const auto& test : golden["cases"]) {
    const auto params = params_of(test);
    if (!params) {
      continue;
    }
    ++num_run;
    CAPTURE(test.dump());
    std::vector<float> logits;
    for (const double p : test["probs"]) {
      logits.push_back(static_cast<float>(std::log(p)));
    }
    const auto context = test.value("last_tokens", std::vector<TokenId>{});
    auto got = probabilities(logits, *params, context);
    const auto want = possible(test["expected"]);
    if (params->shifts()) {
      got.resize(want.size());  // what is too rare to be drawn
    }
    REQUIRE(got.size() == want.size());
    // 0.015 is four standard deviations of a share measured by 20,000 draws.
    const double tolerance = test["sampler"] == "penalties" ? 0.015 : 1e-3;
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(std::abs(got[i] - want[i]) < tolerance);
    }
  }
  MESSAGE("ran " << num_run << " of " << golden["cases"].size() << " cases");
  CHECK(num_run == 24);
}

}  // namespace
}  // namespace tandem::rollout
