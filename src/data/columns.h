// Which columns of a data row mean what, whichever of the known layouts it has.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace tandem::data {

/// Names given by the recipe. An empty one means: the first known name that the row has. A dot goes
/// into a table: "reward_model.ground_truth".
struct ColumnNames {
  std::string prompt;  // prompt, question, problem, input
  std::string
      ground_truth;        // ground_truth, reward_model.ground_truth, answer, solution, target, ...
  std::string source;      // data_source
  std::string id;          // id
  std::string completion;  // completion, response, answer, output, solution, target
};

/// Where the right answer may stand, in the order of preference.
const std::vector<std::string>& answer_columns();

/// Where the prompt may stand.
const std::vector<std::string>& prompt_columns();

/// The value at a dotted path, or null where a part is missing.
const nlohmann::json* find_column(const nlohmann::json& row, const std::string& path);

/// The column `name`, or where it is empty the first of `known` that the row has; null where it has
/// none. Throws UserError that lists the row's columns when a named one is missing.
const nlohmann::json* choose_column(const nlohmann::json& row,
                                    const std::string& name,
                                    const std::vector<std::string>& known,
                                    const std::string& place);

/// A text as it is, null as "", anything else as its JSON.
std::string column_text(const nlohmann::json& value);

/// "prompt, answer, ...": the row's columns, for errors.
std::string column_list(const nlohmann::json& row);

/// `text` with {column} replaced by the row's; "{{" and "}}" are braces. Throws UserError for an
/// unknown column and for a brace that is alone.
std::string fill_template(const std::string& text,
                          const nlohmann::json& row,
                          const std::string& place);

}  // namespace tandem::data
