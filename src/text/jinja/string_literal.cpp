#include "text/jinja/string_literal.h"

#include <charconv>
#include <optional>

#include "text/jinja/value.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

std::optional<char> simple_escape(char c) {
  static constexpr std::string_view kLetters = "abfnrtv\\'\"";
  static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
  const std::size_t found = kLetters.find(c);
  return found == std::string_view::npos ? std::nullopt : std::optional(kMeanings[found]);
}

// A number of exactly (hex) or at most (octal) `digits` digits.
std::optional<char32_t> number_at(std::string_view text, std::size_t digits, int base) {
  std::uint32_t value = 0;
  const std::string_view part = text.substr(0, digits);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
  const auto read = static_cast<std::size_t>(end - part.data());
  if (error != std::errc() || (base == 16 && read != digits)) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string resolve_escapes(std::string_view literal, int line) {
  std::string out;
  for (std::size_t i = 0; i < literal.size(); ++i) {
    if (literal[i] != '\\' || i + 1 == literal.size()) {
      out += literal[i];
      continue;
    }
    const char c = literal[++i];
    if (const auto simple = simple_escape(c)) {
      out += *simple;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      const auto code = number_at(literal.substr(i + 1), digits, 16);
      if (!code.has_value()) {
        throw TemplateError(std::string("a string has a truncated \\") + c + " escape", line);
      }
      append_utf8(out, *code);
      i += digits;
    } else if (c >= '0' && c <= '7') {
      std::size_t digits = 1;
      while (digits < 3 && i + digits < literal.size() && literal[i + digits] >= '0' &&
             literal[i + digits] <= '7') {
        ++digits;
      }
      append_utf8(out, number_at(literal.substr(i), digits, 8).value_or(0));
      i += digits - 1;
    } else if (c != '\n') {
      out += '\\';
      out += c;
    }
  }
  return out;
}

}  // namespace tandem::text::jinja
