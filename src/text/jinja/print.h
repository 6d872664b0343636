// Values as text: str(), repr() and JSON, as Python writes them.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "text/jinja/value.h"

namespace tandem::text::jinja {

std::string to_string(const Value& value);
std::string to_repr(const Value& value);

/// Python's repr of a float: shortest digits that read back.
std::string print_float(double x);

/// HTML escapes of & < > ' ".
std::string escape_html(std::string_view text);

struct JsonStyle {
  bool ensure_ascii = false;
  bool sort_keys = false;
  std::optional<std::string> indent;  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
};

/// json.dumps. Throws for what has no JSON form.
std::string to_json(const Value& value, const JsonStyle& style);

Value from_json(const nlohmann::ordered_json& json);

}  // namespace tandem::text::jinja
