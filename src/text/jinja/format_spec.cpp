#include "text/jinja/format_spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/text_functions.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

bool is_align(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

FormatSpec read_spec(std::string_view text) {
  FormatSpec spec;
  std::size_t at = 0;
  const std::size_t first = text.empty() ? 0 : decode_utf8(text, 0).length;
  if (first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (!text.empty() && is_align(text[0])) {
    spec.align = text[0];
    at = 1;
  }
  const auto skip = [&](char c) {
    const bool there = at < text.size() && text[at] == c;
    at += there ? 1 : 0;
    return there;
  };
  if (at < text.size() && (text[at] == '+' || text[at] == ' ' || text[at] == '-')) {
    spec.sign = text[at++];
  }
  spec.alternate = skip('#');
  spec.zero = skip('0');
  spec.width = read_number(text, at).value_or(0);
  spec.grouped = skip(',') || skip('_');
  if (skip('.')) {
    spec.precision = read_number(text, at);
    if (!spec.precision.has_value() || *spec.precision > kMaxPrecision) {
      throw TemplateError("a format's precision is missing or too large");
    }
  }
  spec.type = at < text.size() ? text[at++] : '\0';
  if (at != text.size()) {
    throw TemplateError(fmt::format("invalid format specifier '{}'", text));
  }
  return spec;
}

std::string group_thousands(const std::string& number) {
  const std::size_t whole = std::min(number.find_first_of(".e"), number.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    out += (i > 0 && (whole - i) % 3 == 0) ? "," : "";
    out += number[i];
  }
  return out + number.substr(whole);
}

std::string float_digits(double x, const FormatSpec& spec) {
  const int precision = spec.precision.value_or(6);
  switch (spec.type) {
    case 'f':
    case 'F':
      return fmt::format("{:.{}f}", x, precision);
    case 'e':
      return fmt::format("{:.{}e}", x, precision);
    case 'E':
      return fmt::format("{:.{}E}", x, precision);
    case '%':
      return fmt::format("{:.{}f}%", x * 100, precision);
    case '\0':
      return spec.precision.has_value() ? fmt::format("{:.{}g}", x, precision) : print_float(x);
    case 'g':
    case 'G':
      return fmt::format("{:.{}g}", x, precision);
    default:
      throw TemplateError(fmt::format("unknown format code '{}' for a float", spec.type));
  }
}

std::string integer_digits(std::uint64_t magnitude, const FormatSpec& spec) {
  switch (spec.type) {
    case 'x':
      return (spec.alternate ? "0x" : "") + fmt::format("{:x}", magnitude);
    case 'X':
      return (spec.alternate ? "0X" : "") + fmt::format("{:X}", magnitude);
    case 'o':
      return (spec.alternate ? "0o" : "") + fmt::format("{:o}", magnitude);
    case 'b':
      return (spec.alternate ? "0b" : "") + fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

}  // namespace

std::optional<int> read_number(std::string_view text, std::size_t& at) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc() || value > kMaxPrecision * kMaxPrecision) {
    return std::nullopt;
  }
  at = static_cast<std::size_t>(end - text.data());
  return value;
}

std::string format_number(const Value& value, const FormatSpec& spec) {
  const bool integral = !value.is<double>() &&
                        std::string_view("\0dixXobu", 8).find(spec.type) != std::string_view::npos;
  bool negative = false;
  std::string digits;
  if (integral) {
    const std::int64_t number = expect_integer(value, "format");
    negative = number < 0;
    const auto bits = static_cast<std::uint64_t>(number);
    digits = integer_digits(negative ? ~bits + 1 : bits, spec);
  } else {
    const double x = value.is<double>() ? *value.get<double>()
                                        : static_cast<double>(expect_integer(value, "format"));
    negative = std::signbit(x);
    digits = float_digits(std::abs(x), spec);
  }
  if (spec.grouped) {
    digits = group_thousands(digits);
  }
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  const bool zeros = spec.zero && (spec.align == '\0' || spec.align == '=');
  if (zeros || spec.align == '=') {
    const auto width = spec.width - static_cast<std::int64_t>(sign.size());
    return sign + pad(digits, width, '>', zeros ? "0" : spec.fill);
  }
  return pad(sign + digits, spec.width, spec.align == '\0' ? '>' : spec.align, spec.fill);
}

std::string format_text(const std::string& text, const FormatSpec& spec) {
  std::string shown = text;
  if (spec.precision.has_value()) {
    const SliceBounds bounds{make_none(), make_int(*spec.precision), make_none()};
    shown = slice(make_text(text), bounds).text();
  }
  return pad(shown, spec.width, spec.align == '\0' ? '<' : spec.align, spec.fill);
}

std::string format_value(const Value& value, std::string_view spec) {
  if (spec.empty()) {
    return to_string(value);
  }
  const FormatSpec parsed = read_spec(spec);
  const bool as_text = parsed.type == 's' || (parsed.type == '\0' && value.is<bool>());
  if (value.is_number() && !as_text) {
    return format_number(value, parsed);
  }
  if (parsed.type != '\0' && parsed.type != 's') {
    throw TemplateError(fmt::format(
        "unknown format code '{}' for object of type '{}'", parsed.type, type_name(value)));
  }
  return format_text(to_string(value), parsed);
}

}  // namespace tandem::text::jinja
