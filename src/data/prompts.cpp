#include "data/prompts.h"

#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/jsonl_reader.h"

namespace tandem::data {
namespace {

class PromptLoader {
 public:
  PromptLoader(const std::string& file, const RowConfig& config, const TextModel& model)
      : config_(config),
        model_(model),
        chat_(uses_chat(config, model)),
        stem_(std::filesystem::path(file).stem().string()) {
    source_.path = file;
  }

  void take(const nlohmann::json& row, const std::string& place) {
    ++source_.report.num_read;
    Prompt prompt;
    prompt.id = row_id(row, config_, place);
    if (!set_answer(prompt, row, place) || !set_text(prompt, row, place) || !cut(prompt, place)) {
      return;
    }
    const auto* source = choose_column(row, config_.columns.source, {"data_source"}, place);
    prompt.source = source == nullptr || source->is_null() ? stem_ : column_text(*source);
    prompt.row_json = row.dump();
    source_.prompts.push_back(std::move(prompt));
  }

  PromptSource finish() {
    std::vector<std::int64_t> lengths;
    for (const Prompt& prompt : source_.prompts) {
      lengths.push_back(static_cast<std::int64_t>(prompt.ids.size()));
    }
    source_.report.num_kept = static_cast<std::int64_t>(lengths.size());
    set_lengths(source_.report, std::move(lengths));
    if (source_.prompts.empty()) {
      fail<UserError>("{}; nothing is left to draw from",
                      describe(source_.report, source_.path, config_));
    }
    return std::move(source_);
  }

 private:
  // Each of these returns false when the row is left out, counted.
  bool set_answer(Prompt& prompt, const nlohmann::json& row, const std::string& place) {
    const auto* answer = choose_column(row, config_.columns.ground_truth, answer_columns(), place);
    if (answer != nullptr && answer->is_null()) {
      ++source_.report.num_no_answer;
      return false;
    }
    prompt.ground_truth = answer == nullptr ? "" : column_text(*answer);
    return true;
  }

  bool set_text(Prompt& prompt, const nlohmann::json& row, const std::string& place) {
    std::string own;  // what the row itself adds, examples left out
    if (chat_) {
      prompt.messages = prompt_messages(row, config_, place);
      own = prompt.messages.empty() ? "" : prompt.messages.back().content;
    } else {
      own = prompt_text(row, config_, place);
    }
    if (is_blank(own)) {
      ++source_.report.num_empty;
      return false;
    }
    prompt.text = chat_ ? model_.render(prompt.messages, /*add_generation_prompt=*/true) : own;
    // A template spells the special tokens out; raw text gets the tokenizer's.
    prompt.ids = model_.encode(prompt.text, /*add_special_tokens=*/!chat_);
    if (prompt.ids.empty()) {
      ++source_.report.num_empty;
      return false;
    }
    return true;
  }

  bool cut(Prompt& prompt, const std::string& place) {
    const auto kept =
        kept_tokens(static_cast<std::int64_t>(prompt.ids.size()), config_, place, source_.report);
    std::vector<TokenId> ids;
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (kept[i]) {
        ids.push_back(prompt.ids[i]);
      }
    }
    prompt.ids = std::move(ids);
    return !prompt.ids.empty();
  }

  const RowConfig& config_;
  const TextModel& model_;
  bool chat_;
  std::string stem_;
  PromptSource source_;
};

}  // namespace

PromptSource load_prompts(const std::string& file,
                          const RowConfig& config,
                          const TextModel& model) {
  PromptLoader loader(file, config, model);
  JsonlReader reader(file);
  while (const auto row = reader.next()) {
    loader.take(*row, reader.place());
  }
  return loader.finish();
}

}  // namespace tandem::data
