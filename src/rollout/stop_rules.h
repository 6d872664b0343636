// When a sample ends: stop ids, stop strings in the decoded text, lengths.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/trajectory.h"
#include "rollout/sampling_params.h"

namespace tandem::rollout {

/// Turns ids into text as they come; what it returns adds up to the decoded whole.
struct TextSink {
  virtual ~TextSink() = default;
  /// The text that is certain after `id`; never half a character.
  virtual std::string push(TokenId id) = 0;
  /// The rest, at the end of the sample.
  virtual std::string finish() = 0;
};

/// Makes the sink of one sample that continues `prompt`.
using TextSinkFactory = std::function<std::unique_ptr<TextSink>(std::span<const TokenId> prompt)>;

/// Finds strings in a text that comes in pieces.
class StopStrings {
 public:
  struct Match {
    std::size_t begin = 0;   // offset in the whole text
    std::size_t string = 0;  // index in the list
  };

  explicit StopStrings(const std::vector<std::string>& strings);

  /// Appends `piece` and returns the match that begins first, the earlier in the list of two at one
  /// place, among those that end in the piece. With `armed` false the piece only joins the text.
  std::optional<Match> push(std::string_view piece, bool armed);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  const std::vector<std::string>* strings_;  // not owned
  std::string text_;
};

/// What ended a sample.
struct Stop {
  FinishReason reason = FinishReason::kLength;
  std::optional<TokenId> id;  // for kStop
  std::string string;         // for kStopString
};

/// Follows one sample. The order of the rules, a token at a time: below min_new_tokens nothing but
/// the length ends it; a stop id; a stop string; the length.
class StopRules {
 public:
  /// `params` is not owned. `text` may be null where there are no stop strings.
  StopRules(const SamplingParams& params, std::int64_t max_tokens, std::unique_ptr<TextSink> text);

  /// Why the sample ends after its `num_tokens`-th token `id`, or nothing.
  std::optional<Stop> push(TokenId id, std::int64_t num_tokens);

  /// The decoded text up to the stop string; empty where there are no stop strings.
  [[nodiscard]] std::string final_text();

 private:
  [[nodiscard]] bool is_stop_id(TokenId id) const;

  const SamplingParams* params_;
  std::int64_t max_tokens_;
  std::unique_ptr<TextSink> sink_;
  StopStrings strings_;
  std::optional<std::size_t> cut_;  // where the stop string begins
};

}  // namespace tandem::rollout
