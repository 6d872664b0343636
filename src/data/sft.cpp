#include "data/sft.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/jsonl_reader.h"

namespace tandem::data {
namespace {

const std::vector<std::string> kCompletionColumns = {
    "completion", "response", "answer", "output", "solution", "target"};

void append(SftSequence& sequence, const std::vector<TokenId>& ids, bool learnt) {
  sequence.ids.insert(sequence.ids.end(), ids.begin(), ids.end());
  sequence.mask.insert(sequence.mask.end(), ids.size(), learnt ? 1 : 0);
}

bool is_stop(const TextModel& model, TokenId id) {
  return std::find(model.stop_ids.begin(), model.stop_ids.end(), id) != model.stop_ids.end();
}

// A turn of the model: learnt up to its last stop token, which is put there where it is missing.
void append_turn(SftSequence& sequence, std::vector<TokenId> ids, const TextModel& model) {
  const auto stop =
      std::find_if(ids.rbegin(), ids.rend(), [&](TokenId id) { return is_stop(model, id); });
  if (stop == ids.rend() && !model.stop_ids.empty()) {
    ids.push_back(model.stop_ids.front());
    append(sequence, ids, true);
    return;
  }
  const std::vector<TokenId> behind(stop.base(), ids.end());
  ids.erase(stop.base(), ids.end());
  append(sequence, ids, true);
  append(sequence, behind, false);
}

std::string completion_of(const nlohmann::json& row,
                          const RowConfig& config,
                          const std::string& place) {
  const auto* value = choose_column(row, config.columns.completion, kCompletionColumns, place);
  if (value == nullptr) {
    fail<UserError>(
        "{}: has no completion; its columns are {}, name one in data.columns.completion",
        place,
        column_list(row));
  }
  if (value->is_array()) {  // TRL: the completion as messages
    const auto messages = parse_messages(*value, place);
    return messages.empty() ? "" : messages.front().content;
  }
  return column_text(*value);
}

std::vector<Message> conversation_of(const nlohmann::json& row,
                                     const RowConfig& config,
                                     const std::string& place) {
  const auto list = row.find("messages");
  if (list == row.end() || !list->is_array()) {
    auto messages = prompt_messages(row, config, place);
    messages.push_back({"assistant", completion_of(row, config, place)});
    return messages;
  }
  auto messages = parse_messages(*list, place);
  if (!config.system.empty() && (messages.empty() || messages.front().role != "system")) {
    messages.insert(messages.begin(), {"system", config.system});
  }
  return messages;
}

// The text that `messages` up to `end` add to `before`, which must be their beginning.
std::string added_text(const std::string& before,
                       const std::string& all,
                       const std::string& place) {
  if (!all.starts_with(before)) {
    fail<UserError>(
        "{}: the chat template changes earlier turns when one is added, so that what is learnt "
        "would not be what is sampled; tandem render --check shows where",
        place);
  }
  return all.substr(before.size());
}

// Turns that stand before the worked question (data.examples) are shown, not learnt.
SftSequence chat_sequence(const std::vector<Message>& messages,
                          std::size_t first_learnt,
                          const TextModel& model,
                          const std::string& place) {
  SftSequence sequence;
  std::string done;  // the text whose ids are in the sequence
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant" || i < first_learnt) {
      continue;
    }
    const std::vector<Message> given(messages.begin(),
                                     messages.begin() + static_cast<std::ptrdiff_t>(i));
    std::vector<Message> said = given;
    said.push_back(messages[i]);
    const std::string prompt = model.render(given, /*add_generation_prompt=*/true);
    append(sequence, model.encode(added_text(done, prompt, place), false), false);
    const std::string all = model.render(said, /*add_generation_prompt=*/false);
    append_turn(sequence, model.encode(added_text(prompt, all, place), false), model);
    done = all;
  }
  return sequence;
}

SftSequence raw_sequence(const nlohmann::json& row,
                         const RowConfig& config,
                         const TextModel& model,
                         const std::string& place) {
  SftSequence sequence;
  append(sequence, model.encode(prompt_text(row, config, place), true), false);
  append_turn(sequence, model.encode(completion_of(row, config, place), false), model);
  return sequence;
}

SftSequence make_sequence(const nlohmann::json& row,
                          const RowConfig& config,
                          const TextModel& model,
                          const std::string& place) {
  if (!uses_chat(config, model)) {
    return raw_sequence(row, config, model, place);
  }
  const auto messages = conversation_of(row, config, place);
  const bool whole = row.contains("messages");
  return chat_sequence(messages, whole ? 0 : messages.size() - 1, model, place);
}

// False when the row is left out, counted.
bool cut(SftSequence& sequence,
         const RowConfig& config,
         const std::string& place,
         LoadReport& report) {
  const auto kept =
      kept_tokens(static_cast<std::int64_t>(sequence.ids.size()), config, place, report);
  SftSequence out;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (kept[i]) {
      out.ids.push_back(sequence.ids[i]);
      out.mask.push_back(sequence.mask[i]);
    }
  }
  sequence.ids = std::move(out.ids);
  sequence.mask = std::move(out.mask);
  return !kept.empty();
}

}  // namespace

SftSource load_sft(const std::string& file, const RowConfig& config, const TextModel& model) {
  SftSource source;
  source.path = file;
  JsonlReader reader(file);
  std::vector<std::int64_t> lengths;
  while (const auto row = reader.next()) {
    ++source.report.num_read;
    SftSequence sequence = make_sequence(*row, config, model, reader.place());
    sequence.id = row_id(*row, config, reader.place());
    if (!sequence.ids.empty() && !cut(sequence, config, reader.place(), source.report)) {
      continue;
    }
    // The first id has nothing before it that could predict it.
    if (std::count(sequence.mask.begin(), sequence.mask.end(), 1) == 0 || sequence.ids.size() < 2) {
      ++source.report.num_empty;
      continue;
    }
    lengths.push_back(static_cast<std::int64_t>(sequence.ids.size()));
    source.sequences.push_back(std::move(sequence));
  }
  source.report.num_kept = static_cast<std::int64_t>(lengths.size());
  set_lengths(source.report, std::move(lengths));
  if (source.sequences.empty()) {
    fail<UserError>("{}; nothing is left to learn", describe(source.report, file, config));
  }
  return source;
}

}  // namespace tandem::data
