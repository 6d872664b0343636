// A sequence of tokens that the scheduler brings to its end, and the group it belongs to.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "rollout/block_manager.h"
#include "rollout/step_plan.h"

namespace tandem::rollout {

/// What the samples of one request have in common.
struct GroupState {
  GroupRequest request;
  std::int64_t max_new_tokens = 0;  // the request's, cut to what the model's length leaves
  std::vector<std::int32_t> open;   // samples that the shared prompt is still to become
  std::int32_t num_unfinished = 0;
  std::int64_t arrival = 0;  // requests are numbered as they are added
  PromptLogprobs prompt;     // of the tokens scored so far
  bool started = false;      // rows of its prompt were planned, and count in the statistics

  [[nodiscard]] std::int64_t prompt_length() const {
    return static_cast<std::int64_t>(request.prompt.size());
  }
};

/// Either the prompt that a group's samples share, until its last row is computed, or one sample.
/// It wants `length() - computed` more rows of KV: one while it is decoded.
struct Sequence {
  static constexpr std::int32_t kSharedPrompt = -1;

  GroupState* group = nullptr;  // not owned
  std::int32_t sample = kSharedPrompt;
  std::vector<TokenId> ids;         // prompt and output, and during a step the drafts behind them
  std::int64_t num_drafts = 0;      // tokens at the end of ids that are guessed
  std::int64_t computed = 0;        // positions whose KV rows are valid
  std::int64_t high_water = 0;      // greatest `computed` so far: rows below it are done again
  CacheRoot root;                   // of the moment it was started
  std::optional<BlockTable> table;  // while it runs
  std::vector<std::int32_t> slots;  // per position that `table` has room for
  std::unique_ptr<StopRules> stop_rules;
  FinishedSample output;
  bool done = false;
  std::vector<std::unique_ptr<Sequence>> successors;  // samples of a prompt that is done

  [[nodiscard]] bool is_prompt() const { return sample == kSharedPrompt; }
  [[nodiscard]] std::int64_t length() const {
    return static_cast<std::int64_t>(ids.size()) - num_drafts;
  }
  [[nodiscard]] bool is_decoding() const { return !is_prompt() && computed + 1 == length(); }
  /// Samples that it stands for.
  [[nodiscard]] std::int64_t width() const {
    return is_prompt() ? static_cast<std::int64_t>(group->open.size()) : 1;
  }
  /// Tokens of the prompt that are still to be scored.
  [[nodiscard]] std::int64_t num_to_score() const {
    return is_prompt() && group->request.params.num_prompt_logprobs >= 0
               ? length() - 1 - static_cast<std::int64_t>(group->prompt.logprobs.size())
               : 0;
  }
  /// A prompt whose tokens are scored has all its rows computed.
  [[nodiscard]] bool reads_cache() const {
    return group->request.read_cache && num_to_score() == 0;
  }
  /// What comes first: the lower priority number, then who was added first, then the sample.
  [[nodiscard]] auto order() const {
    return std::tuple(group->request.priority, group->arrival, sample);
  }
};

/// True when `sequence` is, or is still to become, `sample` of `draw`; any of its samples without
/// one.
bool stands_for(const Sequence& sequence, std::int64_t draw, std::optional<std::int32_t> sample);

/// Brings `slots` up to the blocks of the table.
void refresh_slots(Sequence& sequence, std::int32_t block_size);

/// Adds the next `num_rows` rows of `sequence`, its drafts among them, to `plan`, its pending copy,
/// and the tokens to draw when they reach its end: one, and one behind each draft.
void append_rows(const Sequence& sequence, std::int64_t num_rows, StepPlan& plan);

}  // namespace tandem::rollout
