// How the tokens of one request are drawn and when its samples end.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::rollout {

/// A model's generation_config never changes these: what is not set has the default below.
struct SamplingParams {
  double temperature = 1;         // at most 1e-5: the most likely id, the lowest of equals
  double top_p = 1;               // [0, 1]; keeps the likeliest ids until their sum reaches it
  double min_p = 0;               // [0, 1]; drops ids below min_p times the likeliest
  std::int32_t top_k = 0;         // exactly the k likeliest; 0 or -1: all
  double repetition_penalty = 1;  // > 0; on ids of prompt and output; shifts, removes no id

  std::int64_t max_new_tokens = 256;   // at least 1
  std::int64_t min_new_tokens = 0;     // before them no stop id is drawn and no stop string counts
  std::vector<TokenId> stop_ids = {};  // all end-of-sequence ids of the model's configuration files
  std::vector<std::string> stop_strings = {};
  bool ignore_eos = false;  // stop_ids end nothing

  std::uint64_t seed = 0;
  std::int32_t num_top_logprobs = 0;  // likeliest ids to report with each token

  [[nodiscard]] bool greedy() const;

  /// Throws tandem::UserError that names the first setting out of its range.
  void validate() const;
};

}  // namespace tandem::rollout
