// "Did you mean": the known word nearest to a mistyped one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::config {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`.
///
/// Source: Damerau, "A technique for computer detection and correction of spelling errors",
/// CACM 1964, in the restricted form (no edit inside a swapped pair).
int edit_distance(std::string_view a, std::string_view b);

/// The word of `known` nearest to `word`, or nothing when more than a third of it would change.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& known);

/// "; did you mean WORD?" or an empty string.
std::string suggestion(std::string_view word, const std::vector<std::string>& known);

}  // namespace tandem::config
