// Hand-written matchers for the split patterns of the common tokenizer families.
//
// They give exactly the matches of the regular expressions they stand for (a test compares them
// with PCRE2 on random text) several times faster: these patterns see every character of every
// text.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/regex.h"

namespace tandem::text {

enum class SplitPattern {
  kGpt2,    // 's|'t|...| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  kQwen2,   // (?i:'s|'t|...)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|...
  kLlama3,  // as kQwen2 with \p{N}{1,3}
};

/// The regular expression that a pattern stands for.
std::string_view regex_of(SplitPattern pattern);

/// The pattern that is spelled like `regex`, if one is.
std::optional<SplitPattern> known_pattern(std::string_view regex);

/// Appends the pieces of `text`, which together are the whole of it. `text` is valid UTF-8.
void split_known(SplitPattern pattern, std::string_view text, std::vector<std::string_view>& out);

}  // namespace tandem::text
