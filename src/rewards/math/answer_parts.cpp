#include "rewards/math/answer_parts.h"

#include <algorithm>

#include "rewards/builtin/text.h"
#include "rewards/math/answer_text.h"
#include "rewards/math/scanner.h"

namespace tandem::rewards {
namespace {

constexpr std::string_view kRelations = "=<>\x01\x02\x03\x04";

bool opens(char c) {
  return c == '(' || c == '[' || c == '{';
}
bool closes(char c) {
  return c == ')' || c == ']' || c == '}';
}

// Whether the bracket at 0 is closed by the last character and not before.
bool encloses_all(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += opens(text[i]) ? 1 : closes(text[i]) ? -1 : 0;
    if (depth == 0) {
      return i + 1 == text.size();
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> split_outside(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (depth == 0 && separators.find(text[i]) != std::string_view::npos)) {
      parts.emplace_back(trim(text.substr(start, i - start)));
      start = i + 1;
    } else {
      depth += opens(text[i]) ? 1 : closes(text[i]) ? -1 : 0;
    }
  }
  return parts;
}

std::string_view without_outer_braces(std::string_view text) {
  text = trim(text);
  while (text.size() > 1 && text.front() == '{' && text.back() == '}' && encloses_all(text)) {
    text = trim(text.substr(1, text.size() - 2));
  }
  return text;
}

std::optional<Sequence> parse_sequence(std::string_view text) {
  text = trim(text);
  if (text.size() < 2 || (text.front() != '(' && text.front() != '[') ||
      (text.back() != ')' && text.back() != ']') || !encloses_all(text)) {
    return std::nullopt;
  }
  auto items = split_outside(text.substr(1, text.size() - 2), ",;");
  if (items.size() < 2) {
    return std::nullopt;
  }
  return Sequence{text.front(), text.back(), std::move(items)};
}

std::optional<Relation> parse_relation(std::string_view text) {
  Relation relation;
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += opens(text[i]) ? 1 : closes(text[i]) ? -1 : 0;
    if (depth == 0 && kRelations.find(text[i]) != std::string_view::npos) {
      relation.sides.emplace_back(trim(text.substr(start, i - start)));
      relation.signs += text[i];
      start = i + 1;
    }
  }
  relation.sides.emplace_back(trim(text.substr(start)));
  if (relation.signs.empty() || relation.sides.back().empty()) {
    return std::nullopt;
  }
  return relation;
}

std::optional<Matrix> parse_matrix(std::string_view text) {
  text = trim(text);
  if (text.size() > 2 && opens(text.front()) && encloses_all(text)) {
    text = trim(text.substr(1, text.size() - 2));
  }
  const std::size_t end = text.find("\\end{");
  const std::size_t name_end = text.find('}');
  if (text.substr(0, 7) != "\\begin{" || end == std::string_view::npos ||
      text.find('}', end) + 1 != text.size()) {
    return std::nullopt;
  }
  std::size_t start = name_end + 1;
  if (text.substr(7, name_end - 7) == "array" && text.substr(start, 1) == "{") {
    start = text.find('}', start) + 1;
  }
  Matrix matrix;
  const std::string_view body = text.substr(start, end - start);
  for (const std::string& row : split_outside(body, std::string_view(&kRowBreak, 1))) {
    if (!row.empty()) {
      matrix.push_back(split_outside(row, "&"));
    }
  }
  return matrix;
}

bool is_name(std::string_view side) {
  std::string letters;
  for (std::size_t i = 0; i < side.size(); ++i) {
    if (side[i] == '_') {  // a subscript belongs to the name, whatever it is
      const bool group = side.substr(i + 1, 1) == "{";
      i = group ? std::min(side.find('}', i), side.size()) : i + 1;
      continue;
    }
    letters += side[i];
  }
  replace_all(letters, "\\frac", "");
  const bool letter = std::any_of(letters.begin(), letters.end(), is_letter);
  return letter && std::all_of(letters.begin(), letters.end(), [](char c) {
           return is_letter(c) ||
                  std::string_view("(),|:/{} '\\").find(c) != std::string_view::npos;
         });
}

std::optional<std::string> decimal_number(std::string_view text) {
  std::string digits;
  for (const char c : trim(text)) {
    digits.append(c == ',' || c == ' ' ? 0 : 1, c);
  }
  const bool negative = !digits.empty() && digits.front() == '-';
  digits.erase(0, negative ? 1 : 0);
  const std::size_t point = digits.find('.');
  if (digits.find_first_of("0123456789") == std::string::npos ||
      digits.find_first_not_of("0123456789.") != std::string::npos ||
      (point != std::string::npos && digits.find('.', point + 1) != std::string::npos)) {
    return std::nullopt;
  }
  if (point != std::string::npos) {
    digits.erase(digits.find_last_not_of('0') + 1);
    digits.erase(digits.back() == '.' ? digits.size() - 1 : digits.size());
  }
  digits.erase(0, digits.find_first_not_of('0'));
  if (digits.empty() || digits.front() == '.') {
    digits.insert(digits.begin(), '0');
  }
  if (negative && digits != "0") {
    digits.insert(digits.begin(), '-');
  }
  return digits;
}

std::string with_joined_thousands(std::string_view text) {
  std::string kept;
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    depth += text[i] == '(' || text[i] == '[' ? 1 : text[i] == ')' || text[i] == ']' ? -1 : 0;
    const bool three = i + 3 < text.size() && is_digit(text[i + 1]) && is_digit(text[i + 2]) &&
                       is_digit(text[i + 3]) && (i + 4 == text.size() || !is_digit(text[i + 4]));
    const bool joins = depth == 0 && text[i] == ',' && three && i > 0 && is_digit(text[i - 1]) &&
                       text[text.find_last_not_of("0123456789,", i) + 1] != '0';
    kept.append(joins ? 0 : 1, text[i]);
  }
  return kept;
}

std::string with_decimal_point(std::string text) {
  const std::size_t comma = text.find(',');
  const bool one = comma != std::string::npos && text.find(',', comma + 1) == std::string::npos;
  if (one && text.find_first_not_of("-0123456789,") == std::string::npos) {
    text[comma] = '.';
  }
  return text;
}

}  // namespace tandem::rewards
