#include "config/convert.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "config/scalars.h"
#include "config/suggest.h"

namespace tandem::config {
namespace {

const char* expected(ScalarType type) {
  switch (type) {
    case ScalarType::kBool:
      return "true or false";
    case ScalarType::kInteger:
      return "a whole number";
    case ScalarType::kNumber:
      return "a number";
    case ScalarType::kString:
      return "a text";
  }
  return "";
}

void check_number(const FieldInfo& info, double number, const Node& node, const ValueName& name) {
  if (!std::isfinite(number)) {
    fail<UserError>("{}: {} is {}; a finite number is needed", name.place, name.path, node.text);
  }
  if (info.only && number != *info.only) {
    fail<UserError>("{}: {}: {} is not in this version, only {} is",
                    name.place,
                    name.path,
                    node.text,
                    *info.only);
  }
  const bool low = info.open_below ? number <= info.lowest : number < info.lowest;
  if (low || number > info.highest) {
    fail<UserError>(
        "{}: {} is {}; it must be {}", name.place, name.path, node.text, range_text(info));
  }
}

void check_word(const FieldInfo& info, const std::string& word, const ValueName& name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), word) != names.end();
  };
  if (has(info.later_choices)) {
    fail<UserError>("{}: {}: {} is not in this version, which has {}",
                    name.place,
                    name.path,
                    word,
                    fmt::join(info.choices, ", "));
  }
  if (!info.choices.empty() && !has(info.choices)) {
    fail<UserError>("{}: {} is {}; it must be one of {}{}",
                    name.place,
                    name.path,
                    quote(word),
                    fmt::join(info.choices, ", "),
                    suggestion(word, info.choices));
  }
}

std::optional<ScalarValue> parse(const Node& node, ScalarType type) {
  if (node.kind != Node::Kind::kScalar || (node.quoted && type != ScalarType::kString)) {
    return std::nullopt;
  }
  switch (type) {
    case ScalarType::kString:
      return node.text;
    case ScalarType::kBool:
      return parse_bool(node.text);
    case ScalarType::kInteger:
      return parse_integer(node.text);
    case ScalarType::kNumber:
      return parse_number(node.text);
  }
  return std::nullopt;
}

}  // namespace

std::string describe(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull:
      return "nothing";
    case Node::Kind::kList:
      return "a list";
    case Node::Kind::kTable:
      return "a table";
    case Node::Kind::kScalar:
      break;
  }
  const std::string shown = node.text.size() > 40 ? node.text.substr(0, 40) + "..." : node.text;
  return node.quoted ? "the text " + quote(shown) : fmt::format("'{}'", shown);
}

ScalarValue convert_scalar(const FieldInfo& info,
                           const Node& node,
                           ScalarType type,
                           const ValueName& name) {
  const std::optional<ScalarValue> value = parse(node, type);
  if (!value) {
    fail<UserError>(
        "{}: {} wants {}, not {}", name.place, name.path, expected(type), describe(node));
  }
  if (const auto* word = std::get_if<std::string>(&*value)) {
    check_word(info, *word, name);
  } else if (const auto* whole = std::get_if<std::int64_t>(&*value)) {
    check_number(info, static_cast<double>(*whole), node, name);
  } else if (const auto* number = std::get_if<double>(&*value)) {
    check_number(info, *number, node, name);
  }
  return *value;
}

std::string range_text(const FieldInfo& info) {
  if (info.highest != kUnbounded) {
    return fmt::format("in {}{}, {}]", info.open_below ? "(" : "[", info.lowest, info.highest);
  }
  if (info.lowest == -kUnbounded) {
    return "";
  }
  return fmt::format("{} {}", info.open_below ? "above" : "at least", info.lowest);
}

}  // namespace tandem::config
