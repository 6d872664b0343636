// Bits of HTML: escaping, numbers for people, the page around a body.
#pragma once

#include <string>
#include <string_view>

namespace tandem::app {

/// `text` safe inside an element and inside a double-quoted attribute. Broken UTF-8 and control
/// characters other than white space become U+FFFD.
std::string html_escape(std::string_view text);

/// `text` escaped and cut after `max_bytes`, at a character's border, with a note.
std::string html_excerpt(std::string_view text, std::size_t max_bytes);

/// 0.0312, 12.5, 1,234, 1.2M: four digits at most.
std::string short_number(double value);

/// A whole page that needs nothing from outside: style inside, light and dark by the reader's
/// setting.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace tandem::app
