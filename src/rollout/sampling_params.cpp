#include "rollout/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <utility>

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
}

void check_shifts(const SamplingParams& params) {
  if (!(params.repetition_penalty > 0 && std::isfinite(params.repetition_penalty))) {
    fail<UserError>("repetition_penalty is {}: give a positive number, 1 for none",
                    params.repetition_penalty);
  }
  for (const auto& [name, value] : {std::pair("frequency_penalty", params.frequency_penalty),
                                    std::pair("presence_penalty", params.presence_penalty)}) {
    if (!(value >= -2 && value <= 2)) {
      fail<UserError>("{} is {}: give a number in [-2, 2], 0 for none", name, value);
    }
  }
  for (const auto& [id, bias] : params.logit_bias) {
    if (!std::isfinite(bias)) {
      fail<UserError>("logit_bias of id {} is {}: give a finite number", id, bias);
    }
  }
}

void check_sets(const SamplingParams& params) {
  const auto num_allowed = static_cast<std::int64_t>(params.allowed_ids.size());
  if (num_allowed > AllowedSet::kMaxListed) {
    fail<UserError>("allowed_token_ids has {} ids: at most {} can be carried with a token",
                    num_allowed,
                    AllowedSet::kMaxListed);
  }
  const auto num_banned = static_cast<std::int64_t>(
      params.banned_ids.size() + params.bad_words.size() +
      (params.min_new_tokens > 0 ? params.stop_ids.size() : std::size_t{0}));
  if (num_banned > AllowedSet::kMaxListed) {
    fail<UserError>(
        "banned_token_ids, bad_words and min_new_tokens ban {} ids: at most {} can be carried with "
        "a token; give allowed_token_ids instead",
        num_banned,
        AllowedSet::kMaxListed);
  }
  if (std::ranges::any_of(params.bad_words, [](const auto& word) { return word.empty(); })) {
    fail<UserError>("bad_words: a word has no token");
  }
}

void check_id(const char* name, TokenId id, std::int64_t num_ids) {
  if (id < 0 || id >= num_ids) {
    fail<UserError>("{}: id {} is not in [0, {}), the tokenizer's ids", name, id, num_ids);
  }
}

}  // namespace

bool SamplingParams::shifts() const {
  return repetition_penalty != 1 || frequency_penalty != 0 || presence_penalty != 0 ||
         !logit_bias.empty();
}

void SamplingParams::validate_ids(std::int64_t num_ids) const {
  for (const auto& [id, bias] : logit_bias) {
    check_id("logit_bias", id, num_ids);
  }
  for (const TokenId id : allowed_ids) {
    check_id("allowed_token_ids", id, num_ids);
  }
  for (const TokenId id : banned_ids) {
    check_id("banned_token_ids", id, num_ids);
  }
  for (const auto& word : bad_words) {
    for (const TokenId id : word) {
      check_id("bad_words", id, num_ids);
    }
  }
}

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
  check_shifts(*this);
  check_sets(*this);
  check_lengths(*this);
  if (num_top_logprobs < 0 || num_top_logprobs > AllowedSet::kMaxListed) {
    fail<UserError>(
        "num_top_logprobs is {}: give 0 to {}", num_top_logprobs, AllowedSet::kMaxListed);
  }
  if (num_prompt_logprobs < -1 || num_prompt_logprobs > AllowedSet::kMaxListed) {
    fail<UserError>("num_prompt_logprobs is {}: give 0 to {}, or -1 for none",
                    num_prompt_logprobs,
                    AllowedSet::kMaxListed);
  }
  if (std::ranges::any_of(stop_strings, [](const std::string& s) { return s.empty(); })) {
    fail<UserError>("a stop string is empty: it would end every sample at once");
  }
}

}  // namespace tandem::rollout
