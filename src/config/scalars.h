// How the words of a YAML file become booleans and numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::config {

/// "true" or "false".
std::optional<bool> parse_bool(std::string_view text);

/// A decimal number, infinities and NaN as YAML (".inf", ".nan") and C write them among them.
std::optional<double> parse_number(std::string_view text);

/// A whole number that 64 bits hold exactly, "1e3" and "2.0" among them.
std::optional<std::int64_t> parse_integer(std::string_view text);

/// The shortest text that reads back as the same bits.
std::string number_text(double value);

/// `text` in double quotes with the escapes that JSON and YAML share.
std::string quote(std::string_view text);

}  // namespace tandem::config
