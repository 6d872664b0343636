#include "app/rl/prompt_data.h"

#include <algorithm>

#include "app/rl/recipe_parts.h"

namespace tandem::app {
namespace {

// Validation draws start here, beyond any training run's.
constexpr std::int64_t kValidationDraw = std::int64_t{1} << 39;

}  // namespace

PromptData::PromptData(const Recipe& recipe, const Session& session) {
  const auto rows = row_config(recipe, max_prompt_tokens(recipe, session));
  const auto model = text_model(session);
  const auto load = [&](const std::string& path) {
    auto source = data::load_prompts(path, rows, model);
    summary_.push_back(data::describe(source.report, path, rows));
    return source;
  };
  std::vector<data::StreamSource> sources;
  for (const auto& section : recipe.data.train) {
    train_.push_back(load(section.path));
    sources.push_back(data::stream_source(train_.back(), section.weight));
  }
  for (const auto& section : recipe.data.validation) {
    validation_.push_back(load(section.path));
  }
  if (!sources.empty()) {
    stream_.emplace(std::move(sources),
                    data::StreamConfig{.seed = static_cast<std::uint64_t>(recipe.seed),
                                       .rows_per_step = recipe.rollout.prompts_per_step,
                                       .last_batch = data::last_batch_from(recipe.data.last_batch),
                                       .shuffle = recipe.data.shuffle});
  }
}

std::vector<DrawnPrompt> PromptData::next_step() {
  std::vector<DrawnPrompt> prompts;
  for (const auto& draw : stream_->next_step()) {
    prompts.push_back({draw.draw, train_[draw.source].prompts[static_cast<std::size_t>(draw.row)]});
  }
  return prompts;
}

std::vector<DrawnPrompt> PromptData::validation(
    const std::optional<std::int64_t>& max_prompts) const {
  std::vector<DrawnPrompt> prompts;
  for (const auto& source : validation_) {
    for (const auto& prompt : source.prompts) {
      if (max_prompts && static_cast<std::int64_t>(prompts.size()) >= *max_prompts) {
        return prompts;
      }
      prompts.push_back({kValidationDraw + static_cast<std::int64_t>(prompts.size()), prompt});
    }
  }
  return prompts;
}

std::int64_t PromptData::longest_prompt() const {
  std::int64_t longest = 1;
  for (const auto* sources : {&train_, &validation_}) {
    for (const auto& source : *sources) {
      longest = std::max(longest, source.report.max_tokens);
    }
  }
  return longest;
}

}  // namespace tandem::app
