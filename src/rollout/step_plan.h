// What one engine step computes: rows of tokens, where their KV goes, which logits are wanted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rollout/block_table.h"
#include "rollout/sampling_params.h"
#include "rollout/stop_rules.h"
#include "rollout/token_sampler.h"

namespace tandem::rollout {

/// One prompt of which `num_samples` continuations are wanted.
struct GroupRequest {
  std::int64_t draw = 0;          // index of the group in the global data stream
  std::int32_t first_sample = 0;  // samples are numbered first_sample, first_sample + 1, ...
  std::int32_t num_samples = 1;
  std::int32_t turn = 0;  // of a conversation; part of the random key
  std::vector<TokenId> prompt = {};
  SamplingParams params = {};
  std::int32_t priority = 0;    // lower ones come first; equal ones in order of arrival
  std::string cache_salt = {};  // requests with different salts share no block
  bool read_cache = true;       // false: computes the whole prompt, and still fills the cache
};

/// Log-probabilities of a prompt's tokens, over all ids and at the sampling temperature. Entry i is
/// of token i + 1, given those before it.
struct PromptLogprobs {
  std::vector<float> logprobs;
  std::vector<std::vector<std::pair<TokenId, float>>>
      top;  // empty unless more than 0 are asked for
};

/// A sample that ended. `ids` holds new tokens only, a stop id included; the other arrays have one
/// entry a token, or none at all where the comment says so.
struct FinishedSample {
  std::int64_t draw = 0;
  std::int32_t sample = 0;
  std::vector<TokenId> ids;
  std::vector<float> logprobs;
  std::vector<AllowedSet> allowed;                          // empty when all sets are "all"
  std::vector<WeightVersion> versions;                      // weights that each id was sampled with
  std::vector<std::vector<std::pair<TokenId, float>>> top;  // empty unless asked for
  std::vector<std::int64_t> ranks;      // of each id among its set; empty without `top`
  std::vector<float> sampled_logprobs;  // after bias and penalties; empty without any
  PromptLogprobs prompt;                // empty unless asked for
  std::vector<std::int32_t> kept_rows;  // on the engine's tape, by position; empty without one
  Stop stop;
  std::string text;  // decoded, cut before the stop string; empty without stop strings
};

/// One sequence of a step. Position j has its K and V in slot `slots[j]` of the arena; the slots
/// of this step's own rows are included. Valid until the plan is committed.
struct SequenceView {
  std::span<const std::int32_t> slots;  // [length]
  std::int64_t draw = 0;
  std::int32_t sample = 0;  // the first of the group's while they share the prompt
};

/// One token to draw, or one of the prompt (input.given) to score. All samples of a group draw
/// their first one from one row.
struct SampleEntry {
  std::int32_t logits_row = 0;  // index into StepPlan::sample_rows
  SamplingInput input;          // valid until the plan is committed
};

/// The work of one forward pass. R rows, S sequences.
///
/// In this order: do `copies`, write K and V of all rows to their slots, attend; row r of sequence
/// s = sequence_of_row[r] sees the slots of the positions 0..positions[r].
struct StepPlan {
  std::vector<TokenId> ids;                   // [R]; the rows of a sequence stand together
  std::vector<std::int32_t> positions;        // [R]
  std::vector<std::int32_t> slots;            // [R]: block * block_size + offset
  std::vector<std::int32_t> sequence_of_row;  // [R]: index into sequences
  std::vector<SequenceView> sequences;        // [S]
  std::vector<BlockCopy> copies;              // no block is both a source and a target
  std::vector<std::int32_t> sample_rows;      // rows whose logits are wanted, ascending
  std::vector<SampleEntry> samples;           // commit() takes one SampledToken for each

  [[nodiscard]] bool empty() const { return ids.empty(); }
};

}  // namespace tandem::rollout
