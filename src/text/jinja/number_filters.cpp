// Filters on numbers, and those that take any value.
#include <charconv>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "text/jinja/operators.h"
#include "text/jinja/print.h"
#include "text/jinja/registry.h"
#include "text/jinja/text_functions.h"

namespace tandem::text::jinja {
namespace {

// A number's text without white space around it, underscores between digits and a plus sign.
std::string clean_number(const std::string& text) {
  std::string out = strip(text, true, true);
  std::erase(out, '_');
  return out.starts_with('+') ? out.substr(1) : out;
}

std::optional<std::int64_t> parse_int(const std::string& text, int base) {
  std::string digits = clean_number(text);
  const bool negative = digits.starts_with('-');
  const std::size_t sign = negative ? 1 : 0;
  const char mark = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : '\0';
  if (mark != '\0' && digits.size() > sign + 2 && digits[sign] == '0' &&
      (digits[sign + 1] | 0x20) == mark) {
    digits.erase(sign, 2);
  }
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value, base);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

std::optional<double> parse_float(const std::string& text) {
  const std::string digits = clean_number(text);
  double value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stopped, error] = std::from_chars(digits.data(), end, value);
  return error == std::errc() && stopped == end ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> truncated(double x) {
  constexpr double kLimit = 9.2e18;
  return std::abs(x) < kLimit ? std::optional(static_cast<std::int64_t>(x)) : std::nullopt;
}

Value int_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("int", arguments, {"default", "base"});
  const Value otherwise = bound.get(0) != nullptr ? *bound.get(0) : make_int(0);
  if (input.is_undefined()) {
    throw_undefined(input);
  }
  std::optional<std::int64_t> value;
  if (input.is_text()) {
    const auto base = static_cast<int>(bound.integer(1, 10));
    if (base < 2 || base > 36) {
      throw TemplateError("int: the base is not from 2 to 36");
    }
    value = parse_int(input.text(), base);
    if (!value.has_value()) {
      const auto fraction = parse_float(input.text());
      value = fraction.has_value() ? truncated(*fraction) : std::nullopt;
    }
  } else if (const auto* x = input.get<double>()) {
    value = truncated(*x);
  } else if (input.is_number()) {
    value = expect_integer(input, "int");
  }
  return value.has_value() ? make_int(*value) : otherwise;
}

Value float_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("float", arguments, {"default"});
  if (input.is_undefined()) {
    throw_undefined(input);
  }
  if (input.is<double>()) {
    return input;
  }
  if (input.is_number()) {
    return Value::Variant(static_cast<double>(expect_integer(input, "float")));
  }
  const auto value = input.is_text() ? parse_float(input.text()) : std::nullopt;
  if (value.has_value()) {
    return Value::Variant(*value);
  }
  return bound.get(0) != nullptr ? *bound.get(0) : Value::Variant(0.0);
}

Value abs_filter(Interpreter&, const Value& input, const Arguments&) {
  if (const auto* x = input.get<double>()) {
    return Value::Variant(std::abs(*x));
  }
  if (!input.is_number()) {
    throw TemplateError(fmt::format("bad operand type for abs(): '{}'", type_name(input)));
  }
  const std::int64_t i = expect_integer(input, "abs");
  return i < 0 ? negate(make_int(i)) : make_int(i);
}

Value round_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("round", arguments, {"precision", "method"});
  const std::int64_t precision = bound.integer(0, 0);
  const std::string method = bound.text(1, "common");
  if (!input.is_number()) {
    throw TemplateError(fmt::format("'{}' cannot be rounded", type_name(input)));
  }
  if (std::abs(precision) > 300) {
    throw TemplateError("round: the precision is out of range");
  }
  const double x = input.is<double>() ? *input.get<double>()
                                      : static_cast<double>(expect_integer(input, "round"));
  if (method == "ceil" || method == "floor") {
    const double scale = std::pow(10.0, static_cast<double>(precision));
    return Value::Variant((method == "ceil" ? std::ceil(x * scale) : std::floor(x * scale)) /
                          scale);
  }
  if (method != "common") {
    throw TemplateError("round: method must be common, ceil or floor");
  }
  if (precision < 0) {
    const double scale = std::pow(10.0, static_cast<double>(-precision));
    return Value::Variant(std::nearbyint(x / scale) * scale);
  }
  // Printing rounds the exact binary value half to even, which is Python's round().
  return Value::Variant(std::stod(fmt::format("{:.{}f}", x, precision)));
}

Value default_filter(Interpreter&, const Value& input, const Arguments& arguments) {
  const Bound bound("default", arguments, {"default_value", "boolean"});
  const bool absent = input.is_undefined() || (bound.flag(1, false) && !is_true(input));
  if (!absent) {
    return input;
  }
  return bound.get(0) != nullptr ? *bound.get(0) : make_text("");
}

Value attr_filter(Interpreter& interpreter, const Value& input, const Arguments& arguments) {
  const Bound bound("attr", arguments, {"name"});
  const std::string name = to_string(bound.required(0));
  // Unlike a dot, this never looks at the keys of a dict.
  return input.is<DictPtr>() && !find_method(input, name).has_value()
             ? make_undefined(fmt::format("'dict object' has no attribute '{}'", name))
             : interpreter.member(input, name);
}

}  // namespace

void add_number_filters(FilterTable& table) {
  table.insert({
      {"int", int_filter},
      {"float", float_filter},
      {"abs", abs_filter},
      {"round", round_filter},
      {"default", default_filter},
      {"d", default_filter},
      {"attr", attr_filter},
  });
}

}  // namespace tandem::text::jinja
