// The one-to-one map of byte-level BPE between bytes and printable characters.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::text {

/// For each byte, the character that stands for it, in UTF-8 (GPT-2: printable Latin-1 characters
/// stand for themselves, the others for U+0100 onwards).
const std::array<std::string, 256>& byte_characters();

/// The characters of all bytes of `bytes`.
std::string to_byte_level(std::string_view bytes);

/// The bytes that `token` stands for, or nothing where it holds a character that is no byte's.
std::optional<std::string> from_byte_level(std::string_view token);

}  // namespace tandem::text
