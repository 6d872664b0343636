#include "data/row_reader.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::data {
namespace {

const nlohmann::json& prompt_column(const nlohmann::json& row,
                                    const RowConfig& config,
                                    const std::string& place) {
  const nlohmann::json* value = choose_column(row, config.columns.prompt, prompt_columns(), place);
  if (value == nullptr) {
    fail<UserError>("{}: has no prompt; its columns are {}, name one in data.columns.prompt",
                    place,
                    column_list(row));
  }
  if (!value->is_string() && !value->is_array() && !value->is_null()) {
    fail<UserError>(
        "{}: the prompt must be a text or a list of messages, not {}", place, value->type_name());
  }
  return *value;
}

}  // namespace

Overlong overlong_from(const std::string& name) {
  if (name == "drop") {
    return Overlong::kDrop;
  }
  if (name == "error") {
    return Overlong::kError;
  }
  if (name == "left") {
    return Overlong::kLeft;
  }
  if (name == "right") {
    return Overlong::kRight;
  }
  if (name == "middle") {
    return Overlong::kMiddle;
  }
  fail<UserError>("data.overlong: unknown value {}; known are drop, error, left, right, middle",
                  name);
}

std::string describe(const LoadReport& r, const std::string& file, const RowConfig& config) {
  std::vector<std::string> notes;
  const auto note = [&](std::int64_t count, const std::string& what) {
    if (count > 0) {
      notes.push_back(fmt::format("{} {}", count, what));
    }
  };
  note(r.num_empty, "empty");
  note(r.num_no_answer, "without an answer");
  note(r.num_overlong, fmt::format("longer than {} tokens", config.max_tokens.value_or(0)));
  note(r.num_cut, fmt::format("cut to {} tokens", config.max_tokens.value_or(0)));
  return fmt::format("{}: {} rows, {} kept{}, tokens min/median/max {}/{}/{}",
                     file,
                     r.num_read,
                     r.num_kept,
                     notes.empty() ? "" : fmt::format(" ({})", fmt::join(notes, ", ")),
                     r.min_tokens,
                     r.median_tokens,
                     r.max_tokens);
}

void set_lengths(LoadReport& report, std::vector<std::int64_t> lengths) {
  if (lengths.empty()) {
    return;
  }
  std::sort(lengths.begin(), lengths.end());
  report.min_tokens = lengths.front();
  report.median_tokens = lengths[lengths.size() / 2];
  report.max_tokens = lengths.back();
}

std::vector<bool> kept_tokens(std::int64_t length,
                              const RowConfig& config,
                              const std::string& place,
                              LoadReport& report) {
  const std::int64_t limit = config.max_tokens.value_or(length);
  std::vector<bool> kept(static_cast<std::size_t>(length), true);
  if (length <= limit) {
    return kept;
  }
  if (config.overlong == Overlong::kDrop) {
    ++report.num_overlong;
    return {};
  }
  if (config.overlong == Overlong::kError) {
    fail<UserError>("{}: has {} tokens, {} are allowed; raise the limit or set data.overlong",
                    place,
                    length,
                    limit);
  }
  ++report.num_cut;
  // Where the stretch of length - limit tokens that goes begins.
  const std::int64_t first = config.overlong == Overlong::kLeft     ? 0
                             : config.overlong == Overlong::kMiddle ? limit / 2
                                                                    : limit;
  std::fill_n(kept.begin() + first, length - limit, false);
  return kept;
}

std::vector<Message> parse_messages(const nlohmann::json& list, const std::string& place) {
  std::vector<Message> messages;
  for (const auto& item : list) {
    const auto role = item.find("role");
    const auto content = item.find("content");
    const bool fits = item.is_object() && role != item.end() && role->is_string() &&
                      content != item.end() && content->is_string();
    if (!fits) {
      fail<UserError>(
          "{}: message {} must be {{\"role\": text, \"content\": text}}", place, messages.size());
    }
    messages.push_back({role->get<std::string>(), content->get<std::string>()});
  }
  return messages;
}

std::vector<Message> prompt_messages(const nlohmann::json& row,
                                     const RowConfig& config,
                                     const std::string& place) {
  std::vector<Message> own;
  if (!config.prompt_template.empty()) {
    own.push_back({"user", fill_template(config.prompt_template, row, place)});
  } else if (const auto& prompt = prompt_column(row, config, place); prompt.is_array()) {
    own = parse_messages(prompt, place);
  } else {
    own.push_back({"user", column_text(prompt)});
  }
  if (const auto tools = row.find("tools"); tools != row.end() && !tools->empty()) {
    fail<UserError>("{}: tools: not in this version", place);
  }
  std::vector<Message> messages;
  const bool has_system = !own.empty() && own.front().role == "system";
  if (has_system) {
    messages.push_back(own.front());
    own.erase(own.begin());
  } else if (!config.system.empty()) {
    messages.push_back({"system", config.system});
  }
  messages.insert(messages.end(), config.examples.begin(), config.examples.end());
  messages.insert(messages.end(), own.begin(), own.end());
  return messages;
}

std::string prompt_text(const nlohmann::json& row,
                        const RowConfig& config,
                        const std::string& place) {
  if (!config.prompt_template.empty()) {
    return fill_template(config.prompt_template, row, place);
  }
  const auto& prompt = prompt_column(row, config, place);
  if (prompt.is_array()) {
    fail<UserError>(
        "{}: the prompt is a list of messages, but the model has no chat template, or "
        "data.template is none",
        place);
  }
  return column_text(prompt);
}

std::string row_id(const nlohmann::json& row, const RowConfig& config, const std::string& place) {
  const nlohmann::json* id = choose_column(row, config.columns.id, {"id"}, place);
  return id == nullptr || id->is_null() ? place : column_text(*id);
}

bool uses_chat(const RowConfig& config, const TextModel& model) {
  const bool chat = config.chat && model.render;
  if (!chat && (!config.system.empty() || !config.examples.empty())) {
    fail<UserError>(
        "data.system and data.examples need a chat template, which the model does not have; write "
        "them into data.prompt_template");
  }
  return chat;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string::npos;
}

}  // namespace tandem::data
