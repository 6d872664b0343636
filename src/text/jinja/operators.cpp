#include "text/jinja/operators.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "text/jinja/print.h"

namespace tandem::text::jinja {
namespace {

constexpr std::size_t kMaxRepeat = std::size_t{64} << 20U;  // bytes or elements made by "x * n"

[[noreturn]] void throw_operands(std::string_view op, const Value& a, const Value& b) {
  throw TemplateError(fmt::format(
      "unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(a), type_name(b)));
}

double as_double(const Value& value) {
  if (const auto* x = value.get<double>()) {
    return *x;
  }
  if (const auto* i = value.get<std::int64_t>()) {
    return static_cast<double>(*i);
  }
  return *value.get<bool>() ? 1.0 : 0.0;
}

std::int64_t as_int(const Value& value) {
  const auto* b = value.get<bool>();
  return b != nullptr ? (*b ? 1 : 0) : *value.get<std::int64_t>();
}

[[noreturn]] void throw_overflow() {
  throw TemplateError("integer result is out of range");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) {
    throw TemplateError("division by zero");
  }
  if (b == -1) {
    std::int64_t result = 0;
    return __builtin_sub_overflow(std::int64_t{0}, a, &result) ? (throw_overflow(), 0) : result;
  }
  const std::int64_t quotient = a / b;
  return quotient - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t integer_power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) {
      throw_overflow();
    }
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) {
      throw_overflow();
    }
  }
  return result;
}

Value integer_arithmetic(std::string_view op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "//") {
    result = floor_divide(a, b);
  } else if (op == "%") {
    result = b == -1 ? 0 : a - floor_divide(a, b) * b;
  } else {
    result = integer_power(a, b);
  }
  if (overflow) {
    throw_overflow();
  }
  return make_int(result);
}

Value float_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") {
    return Value::Variant(a + b);
  }
  if (op == "-") {
    return Value::Variant(a - b);
  }
  if (op == "*") {
    return Value::Variant(a * b);
  }
  if (op == "**") {
    return Value::Variant(std::pow(a, b));
  }
  if (b == 0.0) {
    throw TemplateError("division by zero");
  }
  if (op == "/") {
    return Value::Variant(a / b);
  }
  const double quotient = std::floor(a / b);
  return Value::Variant(op == "//" ? quotient : a - quotient * b);
}

Value add_texts(const Text& a, const Text& b) {
  if (!a.safe && !b.safe) {
    return make_text(a.text + b.text);
  }
  return make_text(
      (a.safe ? a.text : escape_html(a.text)) + (b.safe ? b.text : escape_html(b.text)), true);
}

std::optional<Value> add_sequences(const Value& a, const Value& b) {
  const bool lists = a.is<ListPtr>() && b.is<ListPtr>();
  const bool tuples = a.is<Tuple>() && b.is<Tuple>();
  if (!lists && !tuples) {
    return std::nullopt;
  }
  std::vector<Value> items = *a.elements();
  items.insert(items.end(), b.elements()->begin(), b.elements()->end());
  return lists ? make_list(std::move(items)) : make_tuple(std::move(items));
}

Value repeat(const Value& value, std::int64_t times) {
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(times, 0));
  const std::size_t size = value.is_text() ? value.text().size() : value.elements()->size();
  if (size > 0 && count > kMaxRepeat / size) {
    throw TemplateError("the result of a repetition is too large");
  }
  if (value.is_text()) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) {
      out += value.text();
    }
    return make_text(std::move(out));
  }
  std::vector<Value> items;
  for (std::size_t i = 0; i < count; ++i) {
    items.insert(items.end(), value.elements()->begin(), value.elements()->end());
  }
  return value.is<ListPtr>() ? make_list(std::move(items)) : make_tuple(std::move(items));
}

bool is_integer(const Value& value) {
  return value.is<std::int64_t>() || value.is<bool>();
}

bool is_repeatable(const Value& value) {
  return value.is_text() || value.elements() != nullptr;
}

}  // namespace

void throw_undefined(const Value& value) {
  const auto* undefined = value.get<Undefined>();
  const bool known = undefined != nullptr && undefined->message != nullptr;
  throw TemplateError(known ? *undefined->message : "a value is undefined");
}

Value arithmetic(std::string_view op, const Value& a, const Value& b) {
  if (a.is_undefined() || b.is_undefined()) {
    throw_undefined(a.is_undefined() ? a : b);
  }
  if (a.is_number() && b.is_number()) {
    const bool negative_power = op == "**" && is_integer(b) && as_int(b) < 0;
    if (is_integer(a) && is_integer(b) && op != "/" && !negative_power) {
      return integer_arithmetic(op, as_int(a), as_int(b));
    }
    return float_arithmetic(op, as_double(a), as_double(b));
  }
  if (op == "%" && a.is_text()) {
    return make_text(printf_format(a.text(), b));
  }
  if (op == "+") {
    if (a.is_text() && b.is_text()) {
      return add_texts(**a.get<TextPtr>(), **b.get<TextPtr>());
    }
    if (auto joined = add_sequences(a, b)) {
      return *joined;
    }
    if (a.is_text()) {
      throw TemplateError(
          fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
    }
  }
  if (op == "*" && is_repeatable(a) && is_integer(b)) {
    return repeat(a, as_int(b));
  }
  if (op == "*" && is_repeatable(b) && is_integer(a)) {
    return repeat(b, as_int(a));
  }
  throw_operands(op, a, b);
}

Value negate(const Value& value) {
  if (value.is_undefined()) {
    throw_undefined(value);
  }
  if (const auto* x = value.get<double>()) {
    return Value::Variant(-*x);
  }
  if (!is_integer(value)) {
    throw TemplateError(fmt::format("bad operand type for unary -: '{}'", type_name(value)));
  }
  return integer_arithmetic("-", 0, as_int(value));
}

Value plus(const Value& value) {
  if (value.is_undefined()) {
    throw_undefined(value);
  }
  if (!value.is_number()) {
    throw TemplateError(fmt::format("bad operand type for unary +: '{}'", type_name(value)));
  }
  return value.is<double>() ? value : make_int(as_int(value));
}

}  // namespace tandem::text::jinja
