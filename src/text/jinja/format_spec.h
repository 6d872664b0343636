// How a value is laid out in a field: what "{:>8.2f}" and "%-8s" have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace tandem::text::jinja {

/// No format may ask for more digits.
inline constexpr int kMaxPrecision = 1000;

struct FormatSpec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  bool zero = false;
  bool grouped = false;
  std::int64_t width = 0;
  std::optional<int> precision;
  char type = '\0';
};

/// The number that starts at `at`, which moves behind it; nothing where there is none.
std::optional<int> read_number(std::string_view text, std::size_t& at);

/// A number in the layout of `spec`; throws for a type that does not fit it.
std::string format_number(const Value& value, const FormatSpec& spec);

std::string format_text(const std::string& text, const FormatSpec& spec);

}  // namespace tandem::text::jinja
