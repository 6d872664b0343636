// What methods and filters on strings share, with Python's meaning.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace tandem::text::jinja {

/// Without white space, or without the characters of `set`, at the chosen ends.
std::string strip(std::string_view text, bool left, bool right, const std::string* set = nullptr);

/// Parts between runs of white space; at most `most` cuts where it is not negative.
std::vector<std::string> split_words(std::string_view text, std::int64_t most, bool from_right);
std::vector<std::string> split_at(std::string_view text,
                                  std::string_view separator,
                                  std::int64_t most,
                                  bool from_right);
std::vector<std::string> split_lines(std::string_view text, bool keep_ends);

/// At most `most` replacements where it is not negative. An empty `from` stands between characters.
std::string replace(std::string_view text,
                    std::string_view from,
                    std::string_view to,
                    std::int64_t most);

/// To at least `width` characters; `align` is '<', '>' or '^'.
std::string pad(std::string_view text, std::int64_t width, char align, const std::string& fill);

std::string capitalize(std::string_view text);
std::string title_case(std::string_view text);  // a word starts after what is no letter
std::string swap_case(std::string_view text);

bool is_alphanumeric(std::string_view text);
bool is_alphabetic(std::string_view text);
bool is_decimal(std::string_view text);
bool is_numeric(std::string_view text);
bool is_blank(std::string_view text);
bool is_lower_case(std::string_view text);
bool is_upper_case(std::string_view text);

/// "{} {name!r:>8}".format(...).
std::string brace_format(Interpreter& interpreter,
                         std::string_view format,
                         const Arguments& arguments);

/// format(value, spec): fill, alignment, sign, width, grouping, precision and type.
std::string format_value(const Value& value, std::string_view spec);

}  // namespace tandem::text::jinja
