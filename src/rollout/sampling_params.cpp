#include "rollout/sampling_params.h"

#include <algorithm>
#include <cmath>

#include "base/allowed_logprob.h"
#include "base/error.h"

namespace tandem::rollout {
namespace {

void check_share(const char* name, double value) {
  if (!(value >= 0 && value <= 1)) {
    fail<UserError>("{} is {}: give a number in [0, 1]", name, value);
  }
}

void check_lengths(const SamplingParams& params) {
  if (params.max_new_tokens < 1) {
    fail<UserError>("max_new_tokens is {}: give at least 1", params.max_new_tokens);
  }
  if (params.min_new_tokens < 0 || params.min_new_tokens > params.max_new_tokens) {
    fail<UserError>("min_new_tokens is {}: give a number in [0, max_new_tokens = {}]",
                    params.min_new_tokens,
                    params.max_new_tokens);
  }
  if (params.min_new_tokens > 0 &&
      static_cast<std::int64_t>(params.stop_ids.size()) > AllowedSet::kMaxListed) {
    fail<UserError>("min_new_tokens bans {} stop ids: at most {} can be carried with a token",
                    params.stop_ids.size(),
                    AllowedSet::kMaxListed);
  }
}

}  // namespace

bool SamplingParams::greedy() const {
  return temperature <= kGreedyTemperature;
}

void SamplingParams::validate() const {
  if (!(temperature >= 0 && std::isfinite(temperature))) {
    fail<UserError>("temperature is {}: give 0 or a positive number", temperature);
  }
  check_share("top_p", top_p);
  check_share("min_p", min_p);
  if (top_k < -1 || top_k > AllowedSet::kMaxListed) {
    fail<UserError>("top_k is {}: give 1 to {}, or 0 for all ids", top_k, AllowedSet::kMaxListed);
  }
  if (!(repetition_penalty > 0 && std::isfinite(repetition_penalty))) {
    fail<UserError>("repetition_penalty is {}: give a positive number, 1 for none",
                    repetition_penalty);
  }
  check_lengths(*this);
  if (num_top_logprobs < 0 || num_top_logprobs > AllowedSet::kMaxListed) {
    fail<UserError>(
        "num_top_logprobs is {}: give 0 to {}", num_top_logprobs, AllowedSet::kMaxListed);
  }
  if (std::ranges::any_of(stop_strings, [](const std::string& s) { return s.empty(); })) {
    fail<UserError>("a stop string is empty: it would end every sample at once");
  }
}

}  // namespace tandem::rollout
