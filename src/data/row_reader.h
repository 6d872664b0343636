// What prompts and supervised rows have in common: settings, counts, length limits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/columns.h"
#include "data/text_model.h"
#include "protocol/trajectory.h"

namespace tandem::data {

enum class Overlong { kDrop, kError, kLeft, kRight, kMiddle };

/// "drop", "error", "left", "right" or "middle". Throws UserError.
Overlong overlong_from(const std::string& name);

struct RowConfig {
  ColumnNames columns;
  std::string system;             // put before rows without a system message of their own
  std::vector<Message> examples;  // worked examples, put behind the system message
  std::string prompt_template;    // makes the prompt out of {column}s; empty: the prompt column
  bool chat = true;               // a text prompt is one user message where there is a template
  std::optional<std::int64_t> max_tokens;
  Overlong overlong = Overlong::kDrop;
};

/// What became of a file's rows. Tokens are those of the rows that were kept.
struct LoadReport {
  std::int64_t num_read = 0;
  std::int64_t num_kept = 0;
  std::int64_t num_empty = 0;      // dropped: no text in the prompt
  std::int64_t num_no_answer = 0;  // dropped: the answer's column is null
  std::int64_t num_overlong = 0;   // dropped: longer than the limit
  std::int64_t num_cut = 0;        // kept, and cut to the limit
  std::int64_t min_tokens = 0;
  std::int64_t median_tokens = 0;
  std::int64_t max_tokens = 0;
};

/// One line: "data/a.jsonl: 1000 rows, 990 kept (10 longer than 256 tokens), tokens 5/12/80".
std::string describe(const LoadReport& report, const std::string& file, const RowConfig& config);

/// Fills the three lengths.
void set_lengths(LoadReport& report, std::vector<std::int64_t> lengths);

/// Which of `length` ids stay under `config`: true for all of them when it fits; none when the row
/// is dropped. Counts in `report`. Throws UserError with the numbers for `error`.
std::vector<bool> kept_tokens(std::int64_t length,
                              const RowConfig& config,
                              const std::string& place,
                              LoadReport& report);

/// The conversation of a row's prompt: the template's or the column's text as one user message, or
/// the column's messages, behind system message and worked examples.
/// Throws UserError with the place for a missing prompt and for what no template could render.
std::vector<Message> prompt_messages(const nlohmann::json& row,
                                     const RowConfig& config,
                                     const std::string& place);

/// The messages of a JSON list of {role, content}.
std::vector<Message> parse_messages(const nlohmann::json& list, const std::string& place);

/// The prompt as raw text. Throws UserError when it is a list of messages.
std::string prompt_text(const nlohmann::json& row,
                        const RowConfig& config,
                        const std::string& place);

/// The row's id, or its place.
std::string row_id(const nlohmann::json& row, const RowConfig& config, const std::string& place);

/// Whether prompts go through the model's chat template. Throws UserError when they do not although
/// there is a system message or a worked example, which raw text has no place for.
bool uses_chat(const RowConfig& config, const TextModel& model);

/// True where all characters are white space.
bool is_blank(const std::string& text);

}  // namespace tandem::data
