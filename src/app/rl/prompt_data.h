// The data of an RL run: prompts of all files, and the stream that draws from them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/recipe.h"
#include "app/rl/collect.h"
#include "app/session.h"
#include "data/prompts.h"
#include "data/stream.h"

namespace tandem::app {

/// Training and validation prompts, loaded and rendered once.
class PromptData {
 public:
  /// Reads the recipe's files. Throws UserError for what is wrong with them.
  PromptData(const Recipe& recipe, const Session& session);

  /// The prompts of the next step.
  std::vector<DrawnPrompt> next_step();

  /// Validation prompts in file order, at most `max_prompts`; their draws are far from training's,
  /// so validating never changes what training samples.
  [[nodiscard]] std::vector<DrawnPrompt> validation(
      const std::optional<std::int64_t>& max_prompts) const;

  [[nodiscard]] data::DrawStream& stream() { return *stream_; }
  [[nodiscard]] std::int64_t longest_prompt() const;

  /// One line a file: rows read, kept, left out, and their lengths.
  [[nodiscard]] const std::vector<std::string>& summary() const { return summary_; }

 private:
  std::vector<data::PromptSource> train_;
  std::vector<data::PromptSource> validation_;
  std::optional<data::DrawStream> stream_;  // none for `eval`
  std::vector<std::string> summary_;
};

}  // namespace tandem::app
