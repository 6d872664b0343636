// How the tokens of one request are drawn and when its samples end.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::rollout {

/// A model's generation_config never changes these: what is not set has the default below.
struct SamplingParams {
  double temperature = 1;  // at most 1e-5: the most likely id, the lowest of equals
  double top_p = 1;        // [0, 1]; keeps the likeliest ids until their sum reaches it
  double min_p = 0;        // [0, 1]; drops ids below min_p times the likeliest
  std::int32_t top_k = 0;  // exactly the k likeliest; 0 or -1: all

  // These move probabilities and remove no id: log-probabilities for training are without them.
  double repetition_penalty = 1;                           // > 0; on ids of prompt and output
  double frequency_penalty = 0;                            // [-2, 2]; times the count in the output
  double presence_penalty = 0;                             // [-2, 2]; once for an id of the output
  std::vector<std::pair<TokenId, float>> logit_bias = {};  // added first

  // These remove ids, and are part of the set that log-probabilities are over.
  std::vector<TokenId> allowed_ids = {};  // all others are removed; empty: none is
  std::vector<TokenId> banned_ids = {};
  std::vector<std::vector<TokenId>> bad_words = {};  // the last of each, behind the others

  std::int64_t max_new_tokens = 256;   // at least 1
  std::int64_t min_new_tokens = 0;     // before them no stop id is drawn and no stop string counts
  std::vector<TokenId> stop_ids = {};  // all end-of-sequence ids of the model's configuration files
  std::vector<std::string> stop_strings = {};
  bool ignore_eos = false;  // stop_ids end nothing

  std::uint64_t seed = 0;
  std::int32_t num_top_logprobs = 0;  // likeliest ids to report with each token
  std::int32_t num_prompt_logprobs =
      -1;                     // the same for the prompt's tokens; -1: none, 0: their own
  bool include_stop = false;  // the text keeps the stop string that ended it

  [[nodiscard]] bool greedy() const;
  /// True when a bias or a penalty moves probabilities.
  [[nodiscard]] bool shifts() const;

  /// Throws tandem::UserError that names the first setting out of its range.
  void validate() const;

  /// The same for ids outside of [0, num_ids), which only the model's tokenizer can tell.
  void validate_ids(std::int64_t num_ids) const;
};

}  // namespace tandem::rollout
