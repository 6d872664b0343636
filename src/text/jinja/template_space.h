// White space in templates, and what of it tags take away.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tandem::text::jinja {

/// White space as Python's str.strip() sees it.
bool is_python_space(char32_t code);

/// The position behind the white space at `at`.
std::size_t skip_space(std::string_view text, std::size_t at);

/// Line ends as "\n", and without the one at the end of the template.
std::string normalize_newlines(std::string_view source);

struct OpeningTag {
  char sign = '\0';          // what stands behind its two characters, perhaps '-' or '+'
  char kind = '%';           // its second character: '{', '%' or '#'
  bool starts_line = false;  // whether the text before it starts a line
};

/// The text before a tag without the white space that the tag takes away: all of it with '-', that
/// of the tag's own line for statements and comments (lstrip_blocks), none with '+'.
std::string_view strip_before(std::string_view text, const OpeningTag& tag);

}  // namespace tandem::text::jinja
