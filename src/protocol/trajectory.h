// What passes between data, rollout, rewards and trainer: prompts, trajectories and groups.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/phase.h"

namespace tandem {

using TokenId = std::int32_t;

/// One message of a conversation, in the order of the chat template.
struct Message {
  std::string role;     // "system", "user", "assistant", "tool"
  std::string content;  // UTF-8
};

/// One prompt of the data, ready to be sampled from.
struct Prompt {
  std::string id;      // unique in its source: the row's "id", else "FILE:LINE"
  std::string source;  // data_source of the row, else the file's name; validation groups by it
  std::vector<Message> messages;  // empty where the row was raw text or ids
  std::string text;               // the rendered prompt
  std::vector<TokenId> ids;       // what the model is given; never empty
  std::string ground_truth;       // empty where the row has none
  std::string row_json;           // the whole data row, as one JSON object; columns for rewards
};

enum class FinishReason { kStop, kLength, kStopString, kAbort, kError };

/// "stop", "length", "stop_string", "abort" or "error": the words of the JSONL records.
const char* name_of(FinishReason reason);

/// The ids a token was drawn from: only `ids`, or all of the vocabulary without `banned`.
///
/// At most one of the lists has entries; with none the set is "all". The vocabulary ends where the
/// tokenizer does: padding rows of the embedding belong to no set.
struct AllowedSet {
  /// Longest list of either kind. A setting that would need more is refused by name.
  static constexpr std::int64_t kMaxListed = 4096;

  std::vector<TokenId> ids;     // sorted, each once
  std::vector<TokenId> banned;  // sorted, each once

  [[nodiscard]] bool is_all() const { return ids.empty() && banned.empty(); }
  [[nodiscard]] bool contains(TokenId id) const;
  bool operator==(const AllowedSet&) const = default;
};

/// What became of one reward function on one trajectory.
struct RewardOutcome {
  std::optional<double> value;  // none: does not apply, or failed
  std::string failure;          // why it failed; empty where it did not
};

/// One sampled conversation. The arrays from `logprobs` on have one entry a sampled token.
struct Trajectory {
  std::int64_t draw = 0;    // index of its group in the global data stream
  std::int32_t sample = 0;  // index inside its group

  std::vector<TokenId> ids;        // the whole conversation, prompt first
  std::int64_t prompt_length = 0;  // ids[0, prompt_length) were given
  std::vector<std::uint8_t> mask;  // one entry an id of the completion: 1 where the model wrote it

  std::vector<float> logprobs;          // of each completion id, at the sampling temperature
  std::vector<AllowedSet> allowed;      // of each completion id; empty when all sets are "all"
  std::vector<WeightVersion> versions;  // weights that sampled each completion id

  // Where the sampler kept the activations of each position, on its tape; empty where it did not.
  std::vector<std::int32_t> kept_rows;

  FinishReason finish_reason = FinishReason::kLength;
  std::optional<TokenId> stop_id;  // the id that ended it, for kStop
  std::string text;                // decoded completion, special tokens skipped

  std::map<std::string, RewardOutcome> rewards;  // by reward name
  std::map<std::string, std::string> extra;      // columns that rewards logged

  [[nodiscard]] std::int64_t completion_length() const {
    return static_cast<std::int64_t>(ids.size()) - prompt_length;
  }
};

/// All trajectories of one draw of one prompt: the unit of group-relative advantages.
struct Group {
  std::int64_t draw = 0;
  Prompt prompt;
  std::vector<Trajectory> trajectories;  // in sample order
};

}  // namespace tandem
