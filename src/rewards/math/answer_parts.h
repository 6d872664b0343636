// Takes clean answers apart: lists, sequences in brackets, relations, matrices.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::rewards {

/// The parts of `text` between characters of `separators` that stand outside all brackets.
std::vector<std::string> split_outside(std::string_view text, std::string_view separators);

/// (a, b], [a, b), (a, b, c): a whole text in brackets, with its parts.
struct Sequence {
  char open = '(';
  char close = ')';
  std::vector<std::string> items;
};
std::optional<Sequence> parse_sequence(std::string_view text);

/// a = b = c, a < x <= b: sides and the signs between them; nothing without a sign.
struct Relation {
  std::vector<std::string> sides;
  std::string signs;
};
std::optional<Relation> parse_relation(std::string_view text);

/// Rows of a pmatrix, bmatrix or array, bare or in brackets.
using Matrix = std::vector<std::vector<std::string>>;
std::optional<Matrix> parse_matrix(std::string_view text);

/// Without braces or, around a single value, other brackets that enclose all of it.
std::string_view without_outer_braces(std::string_view text);

/// Whether the left side of an equation only names what the right side gives: x, f(x), |AB|, (p,
/// q), S_{ABC}:S. Something to compute, like 2x or a^2, is no name.
bool is_name(std::string_view side);

/// A decimal number in one spelling, without commas and superfluous zeros; nothing for all else.
std::optional<std::string> decimal_number(std::string_view text);

/// "1,234,567" as "1234567", outside brackets. A list of three-digit numbers looks the same.
std::string with_joined_thousands(std::string_view text);

/// "1000,99" as "1000.99": one comma and nothing but digits, as in much of Europe.
std::string with_decimal_point(std::string text);

}  // namespace tandem::rewards
