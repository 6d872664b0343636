// UTF-8 and the character classes that tokenizers ask for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tandem::text {

/// U+FFFD in UTF-8: what broken bytes become.
inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// One decoded character. Broken input gives `valid` false and the length of the maximal broken
/// part, as Unicode chapter 3.9 recommends and most decoders do.
struct Decoded {
  char32_t code = 0;
  std::size_t length = 0;  // in bytes, at least 1
  bool valid = false;
  bool truncated = false;  // broken only because the text ends: more bytes could complete it
};

/// Decodes the character at `text[at]`; `at` is below the length.
Decoded decode_utf8(std::string_view text, std::size_t at);

void append_utf8(std::string& out, char32_t code);

[[nodiscard]] bool is_ascii(std::string_view text);
[[nodiscard]] bool is_valid_utf8(std::string_view text);

/// `text` with U+FFFD for each broken part.
[[nodiscard]] std::string replace_invalid_utf8(std::string_view text);

/// Number of characters of valid UTF-8.
[[nodiscard]] std::size_t count_characters(std::string_view text);

enum CharClass : std::uint8_t { kOther = 0, kLetter = 1, kNumber = 2, kSpace = 4 };

/// Letter is \p{L}, number \p{N}, space the White_Space property; these exclude each other.
[[nodiscard]] CharClass class_of(char32_t code);

/// \p{P}, or an ASCII character that is neither control, space, letter nor digit.
[[nodiscard]] bool is_punctuation(char32_t code);

/// \w: letters, marks, decimal digits, letter numbers and connectors.
[[nodiscard]] bool is_word(char32_t code);

/// What Python prints without an escape: no control, format, private, unassigned character and no
/// separator but the space.
[[nodiscard]] bool is_printable(char32_t code);

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd };

/// The normal form of valid UTF-8.
[[nodiscard]] std::string normalize(std::string_view text, NormalForm form);

/// Case mappings, character by character with the full mappings of Unicode where they are longer.
[[nodiscard]] std::string to_lower(std::string_view text);
[[nodiscard]] std::string to_upper(std::string_view text);

}  // namespace tandem::text
