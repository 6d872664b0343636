#include "text/byte_level.h"

#include <cstdint>

#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr char32_t kFirstShifted = 0x100;
constexpr std::size_t kCodes = 0x100 + 68;  // 68 bytes are not printable

bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

char32_t code_of(int byte) {
  static const std::array<char32_t, 256> codes = [] {
    std::array<char32_t, 256> table{};
    char32_t shifted = kFirstShifted;
    for (int b = 0; b < 256; ++b) {
      table[b] = stands_for_itself(b) ? static_cast<char32_t>(b) : shifted++;
    }
    return table;
  }();
  return codes[byte];
}

const std::array<std::int16_t, kCodes>& bytes_of_codes() {
  static const std::array<std::int16_t, kCodes> bytes = [] {
    std::array<std::int16_t, kCodes> table{};
    table.fill(-1);
    for (int b = 0; b < 256; ++b) {
      table[code_of(b)] = static_cast<std::int16_t>(b);
    }
    return table;
  }();
  return bytes;
}

}  // namespace

const std::array<std::string, 256>& byte_characters() {
  static const std::array<std::string, 256> characters = [] {
    std::array<std::string, 256> table;
    for (int b = 0; b < 256; ++b) {
      append_utf8(table[b], code_of(b));
    }
    return table;
  }();
  return characters;
}

std::string to_byte_level(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    out += byte_characters()[static_cast<unsigned char>(c)];
  }
  return out;
}

std::optional<std::string> from_byte_level(std::string_view token) {
  std::string out;
  for (std::size_t at = 0; at < token.size();) {
    const Decoded c = decode_utf8(token, at);
    if (!c.valid || c.code >= kCodes || bytes_of_codes()[c.code] < 0) {
      return std::nullopt;
    }
    out += static_cast<char>(bytes_of_codes()[c.code]);
    at += c.length;
  }
  return out;
}

}  // namespace tandem::text
