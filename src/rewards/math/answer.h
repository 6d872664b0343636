// Whether two answers mean the same.
#pragma once

#include <string_view>

namespace tandem::rewards {

struct AnswerOptions {
  int precision = 6;  // decimals that a decimal number and an exact value must share; 0 to 15
};

/// Whether `answer` means what `truth` means; both in LaTeX or plain, without surrounding text.
///
/// Equal are: the same text; numbers as exact decimals; expressions that agree at made-up values of
/// their variables; lists and sets in any order; tuples and intervals in order, with their
/// brackets; unions; matrices; x = v and v; equations and inequalities up to a factor; a < x < b
/// and (a, b). A percentage equals its number and its hundredth. What is none of these is compared
/// as words.
bool same_answer(std::string_view truth, std::string_view answer, const AnswerOptions& options);

}  // namespace tandem::rewards
