// Operators on values.
#pragma once

#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace tandem::text::jinja {

/// + - * / // % ** of two values; throws what Python throws.
Value arithmetic(std::string_view op, const Value& a, const Value& b);

Value negate(const Value& value);
Value plus(const Value& value);

/// a in b.
bool contains(const Value& container, const Value& item);

/// Throws the message of an undefined value.
[[noreturn]] void throw_undefined(const Value& value);

/// Element by Python's rules for indices, or null: not there, or not a thing with elements.
/// The second form looks for characters too.
Value item_or_undefined(const Value& object, const Value& key);

struct SliceBounds {
  Value begin;  // None or an integer each
  Value end;
  Value step;
};

Value slice(const Value& object, const SliceBounds& bounds);

/// "format % arguments" of strings.
std::string printf_format(const std::string& format, const Value& arguments);

}  // namespace tandem::text::jinja
