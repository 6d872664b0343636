#include "config/scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace tandem::config {

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  return std::nullopt;
}

std::optional<double> parse_number(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (text.starts_with('-') || text.starts_with('+')) {
    return std::nullopt;
  }
  if (text == ".inf" || text == ".Inf" || text == ".INF") {
    text = "inf";
  } else if (text == ".nan" || text == ".NaN" || text == ".NAN") {
    text = "nan";
  }
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  if (stopped != end || text.empty()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    value = std::numeric_limits<double>::infinity();  // the reader refuses it, as not finite
  } else if (error != std::errc()) {
    return std::nullopt;
  }
  return negative ? -value : value;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  std::int64_t value = 0;
  const std::string_view digits = text.starts_with('+') ? text.substr(1) : text;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  if (stopped == end && error == std::errc()) {
    return value;
  }
  constexpr double kExact = 9007199254740992.0;  // 2^53: whole numbers up to here are exact
  const auto number = parse_number(text);
  if (number && std::abs(*number) <= kExact && *number == std::floor(*number)) {
    return static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

std::string number_text(double value) {
  return fmt::format("{}", value);
}

std::string quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

}  // namespace tandem::config
