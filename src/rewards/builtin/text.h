// Small text helpers of the built-in rewards.
#pragma once

#include <string>
#include <string_view>

namespace tandem::rewards {

inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t first = text.find_first_not_of(kSpace);
  return first == std::string_view::npos
             ? std::string_view()
             : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The last line that is not blank, trimmed.
inline std::string_view last_line(std::string_view text) {
  const std::string_view trimmed = trim(text);
  return trim(trimmed.substr(trimmed.rfind('\n') + 1));  // npos + 1 is 0
}

inline void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace tandem::rewards
