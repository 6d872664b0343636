#include "data/columns.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::data {

const std::vector<std::string>& answer_columns() {
  static const std::vector<std::string> names = {"ground_truth",
                                                 "reward_model.ground_truth",
                                                 "answer",
                                                 "solution",
                                                 "target",
                                                 "expected_answer"};
  return names;
}

const std::vector<std::string>& prompt_columns() {
  static const std::vector<std::string> names = {"prompt", "question", "problem", "input"};
  return names;
}

const nlohmann::json* find_column(const nlohmann::json& row, const std::string& path) {
  // A column may have a dot in its own name.
  if (const auto whole = row.find(path); row.is_object() && whole != row.end()) {
    return &*whole;
  }
  const std::size_t dot = path.find('.');
  if (!row.is_object() || dot == std::string::npos) {
    return nullptr;
  }
  const auto table = row.find(path.substr(0, dot));
  return table == row.end() ? nullptr : find_column(*table, path.substr(dot + 1));
}

const nlohmann::json* choose_column(const nlohmann::json& row,
                                    const std::string& name,
                                    const std::vector<std::string>& known,
                                    const std::string& place) {
  if (!name.empty()) {
    const nlohmann::json* found = find_column(row, name);
    if (found == nullptr) {
      fail<UserError>("{}: has no column {}; it has {}", place, name, column_list(row));
    }
    return found;
  }
  for (const std::string& candidate : known) {
    if (const nlohmann::json* found = find_column(row, candidate)) {
      return found;
    }
  }
  return nullptr;
}

std::string column_text(const nlohmann::json& value) {
  if (value.is_null()) {
    return "";
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string column_list(const nlohmann::json& row) {
  std::string list;
  for (const auto& [name, value] : row.items()) {
    list += list.empty() ? name : ", " + name;
  }
  return list.empty() ? "no columns" : list;
}

std::string fill_template(const std::string& text,
                          const nlohmann::json& row,
                          const std::string& place) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      out += c;
      ++i;
      continue;
    }
    if (c == '}') {
      fail<UserError>("data.prompt_template: a }} without its {{; write }}}} for a brace");
    }
    if (c != '{') {
      out += c;
      continue;
    }
    const std::size_t end = text.find('}', i);
    if (end == std::string::npos) {
      fail<UserError>("data.prompt_template: a {{ without its }}; write {{{{ for a brace");
    }
    const std::string name = text.substr(i + 1, end - i - 1);
    const nlohmann::json* value = find_column(row, name);
    if (value == nullptr) {
      fail<UserError>("{}: data.prompt_template wants a column {}, the row has {}",
                      place,
                      name,
                      column_list(row));
    }
    out += column_text(*value);
    i = end;
  }
  return out;
}

}  // namespace tandem::data
