// Finds the final answer in a text and writes it in one spelling.
#pragma once

#include <string>
#include <string_view>

namespace tandem::rewards {

/// The final answer of a completion, still in LaTeX: the last box (with those just before it, as a
/// list), else what follows "answer is", else the last formula (with those just before it), else
/// a whole short line that reads as an answer, else the last number, else the last line.
std::string final_answer(std::string_view text);

/// The answer that a ground truth states: its box or formula, or else all of it.
std::string stated_answer(std::string_view ground_truth);

/// Relations and set signs of a clean answer, one character each.
inline constexpr char kLessEqual = '\x01';
inline constexpr char kGreaterEqual = '\x02';
inline constexpr char kNotEqual = '\x03';
inline constexpr char kApproximately = '\x04';
inline constexpr char kUnion = '\x05';
inline constexpr char kElement = '\x06';
inline constexpr char kPlusMinus = '\x07';
inline constexpr char kMinusPlus = '\x08';
inline constexpr char kRowBreak = '\x0e';

/// `answer` without what does not change its meaning: sizes and spaces of LaTeX, dollars, degrees,
/// units and text commands. Fractions are \frac, sets are {...}, "and" is a comma.
std::string clean_answer(std::string_view answer);

/// Whether all of a clean answer is a number, expression, list, tuple, relation or matrix.
bool reads_as_mathematics(std::string_view clean);

}  // namespace tandem::rewards
