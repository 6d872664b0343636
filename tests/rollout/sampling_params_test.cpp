#include "rollout/sampling_params.h"

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::rollout {
namespace {

// The message of the error, or nothing when the settings are fine.
std::string problem(const SamplingParams& params) {
  try {
    params.validate();
  } catch (const UserError& error) {
    return error.what();
  }
  return {};
}

bool names(const std::string& message, const std::string& setting) {
  return message.find(setting) != std::string::npos;
}

TEST_CASE("the defaults sample from the model's own distribution") {
  const SamplingParams params;
  CHECK(problem(params).empty());
  CHECK(params.temperature == 1);
  CHECK(params.top_p == 1);
  CHECK(params.top_k == 0);
  CHECK(params.min_p == 0);
  CHECK_FALSE(params.greedy());
}

TEST_CASE("a setting out of its range is refused by name and value") {
  CHECK(names(problem({.temperature = -0.5}), "temperature is -0.5"));
  CHECK(names(problem({.temperature = NAN}), "temperature is nan"));
  CHECK(names(problem({.top_p = 1.5}), "top_p is 1.5"));
  CHECK(names(problem({.min_p = -1}), "min_p is -1"));
  CHECK(names(problem({.top_k = -2}), "top_k is -2"));
  CHECK(names(problem({.top_k = 4097}), "top_k is 4097"));
  CHECK(names(problem({.repetition_penalty = 0}), "repetition_penalty is 0"));
  CHECK(names(problem({.max_new_tokens = 0}), "max_new_tokens is 0"));
  CHECK(names(problem({.max_new_tokens = 3, .min_new_tokens = 4}), "min_new_tokens is 4"));
  CHECK(names(problem({.stop_strings = {"a", ""}}), "stop string is empty"));
  CHECK(names(problem({.num_top_logprobs = -1}), "num_top_logprobs is -1"));
}

TEST_CASE("more stop ids than a token can carry are refused with the setting that bans them") {
  SamplingParams params;
  params.stop_ids.resize(4097);
  CHECK(problem(params).empty());
  params.min_new_tokens = 1;
  CHECK(names(problem(params), "min_new_tokens ban 4097 ids"));
}

TEST_CASE("temperatures up to 1e-5 are greedy, -1 means no top-k") {
  CHECK(SamplingParams{.temperature = 0}.greedy());
  CHECK(SamplingParams{.temperature = 1e-5}.greedy());
  CHECK_FALSE(SamplingParams{.temperature = 1e-4}.greedy());
  CHECK(problem({.top_k = -1}).empty());
}

}  // namespace
}  // namespace tandem::rollout
