// Equality of MATH answers as strings, and the last box of a text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::rewards {

/// Contents of every `\boxed{...}`, `\fbox{...}` and `\boxed ...$` of `text`, from left to right,
/// with the place of each. A box without its closing brace ends with the text.
struct Box {
  std::size_t start;  // of the backslash
  std::size_t end;    // one past the closing brace
  std::string_view content;
};
std::vector<Box> boxes(std::string_view text);

/// Whether both sides read the same after a fixed list of rewritings; the order of lists counts,
/// percent and degree signs do not, and nothing is computed but 0.5 = 1/2.
///
/// Source: Hendrycks et al., "Measuring Mathematical Problem Solving With the MATH Dataset",
/// arXiv:2103.03874, the authors' math_equivalence.
bool hendrycks_equal(std::string_view a, std::string_view b);

/// The rewriting that hendrycks_equal compares.
std::string hendrycks_normal_form(std::string_view answer);

}  // namespace tandem::rewards
