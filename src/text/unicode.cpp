#include "text/unicode.h"

#include <array>
#include <cstdlib>
#include <memory>
#include <vector>

#include <utf8proc.h>

#include "base/error.h"

namespace tandem::text {
namespace {

constexpr char32_t kTableSize = 0x10000;

bool is_white_space(char32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

CharClass compute_class(char32_t code) {
  if (is_white_space(code)) {
    return kSpace;
  }
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  if (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO) {
    return kLetter;
  }
  if (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) {
    return kNumber;
  }
  return kOther;
}

// The classes of the basic plane, looked up once per character of every text.
const std::vector<CharClass>& class_table() {
  static const std::vector<CharClass> table = [] {
    std::vector<CharClass> classes(kTableSize);
    for (char32_t code = 0; code < kTableSize; ++code) {
      classes[code] = compute_class(code);
    }
    return classes;
  }();
  return table;
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0U) == 0x80U;
}

// How many bytes a lead byte announces, and what the second byte may be.
struct Lead {
  std::size_t length = 0;  // 0 where the byte cannot lead
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead lead_of(unsigned char byte) {
  if (byte >= 0xC2 && byte <= 0xDF) {
    return {.length = 2};
  }
  if (byte >= 0xE0 && byte <= 0xEF) {
    const bool surrogates = byte == 0xED;
    return {.length = 3,
            .low = static_cast<unsigned char>(byte == 0xE0 ? 0xA0 : 0x80),
            .high = static_cast<unsigned char>(surrogates ? 0x9F : 0xBF)};
  }
  if (byte >= 0xF0 && byte <= 0xF4) {
    return {.length = 4,
            .low = static_cast<unsigned char>(byte == 0xF0 ? 0x90 : 0x80),
            .high = static_cast<unsigned char>(byte == 0xF4 ? 0x8F : 0xBF)};
  }
  return {};
}

using CaseMap = utf8proc_int32_t (*)(utf8proc_int32_t);

// The mappings of SpecialCasing.txt that templates can meet and utf8proc has only as one character.
std::string map_case(std::string_view text, CaseMap map) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    if (!c.valid) {
      out += kReplacement;
    } else if (map == utf8proc_toupper && c.code == 0xDF) {
      out += "SS";
    } else {
      append_utf8(out, static_cast<char32_t>(map(static_cast<utf8proc_int32_t>(c.code))));
    }
    at += c.length;
  }
  return out;
}

}  // namespace

Decoded decode_utf8(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return {.code = first, .length = 1, .valid = true};
  }
  const Lead lead = lead_of(first);
  if (lead.length == 0) {
    return {.length = 1};
  }
  const std::size_t left = text.size() - at;
  char32_t code = first & (0x7FU >> lead.length);
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == left) {
      return {.length = i, .truncated = true};
    }
    const unsigned char next = byte(i);
    const bool fits = i == 1 ? next >= lead.low && next <= lead.high : is_continuation(next);
    if (!fits) {
      return {.length = i};
    }
    code = (code << 6U) | (next & 0x3FU);
  }
  return {.code = code, .length = lead.length, .valid = true};
}

void append_utf8(std::string& out, char32_t code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  std::array<utf8proc_uint8_t, 4> bytes{};
  const auto length = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes.data());
  if (length <= 0) {
    out += kReplacement;
    return;
  }
  out.append(bytes.begin(), bytes.begin() + length);
}

bool is_ascii(std::string_view text) {
  unsigned char all = 0;
  for (const char c : text) {
    all |= static_cast<unsigned char>(c);
  }
  return all < 0x80;
}

bool is_valid_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const Decoded c = decode_utf8(text, at);
    if (!c.valid) {
      return false;
    }
    at += c.length;
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    out += c.valid ? text.substr(at, c.length) : kReplacement;
    at += c.length;
  }
  return out;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    count += is_continuation(static_cast<unsigned char>(c)) ? 0 : 1;
  }
  return count;
}

CharClass class_of(char32_t code) {
  static const std::vector<CharClass>& table = class_table();
  return code < kTableSize ? table[code] : compute_class(code);
}

bool is_punctuation(char32_t code) {
  if (code < 0x80) {
    return code > 0x20 && code != 0x7F && class_of(code) == kOther;
  }
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_word(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NL) ||
         category == UTF8PROC_CATEGORY_PC;
}

bool is_printable(char32_t code) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code));
  const bool separator = category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
  const bool control = category >= UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CN;
  return code == ' ' || (!separator && !control);
}

std::string normalize(std::string_view text, NormalForm form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == NormalForm::kNfkc || form == NormalForm::kNfkd) {
    options |= UTF8PROC_COMPAT;
  }
  utf8proc_uint8_t* raw = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                   static_cast<utf8proc_ssize_t>(text.size()),
                                   &raw,
                                   static_cast<utf8proc_option_t>(options));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(raw, &std::free);
  TANDEM_CHECK(length >= 0, "Unicode normalization failed: {}", utf8proc_errmsg(length));
  return {reinterpret_cast<const char*>(raw), static_cast<std::size_t>(length)};
}

std::string to_lower(std::string_view text) {
  return map_case(text, &utf8proc_tolower);
}

std::string to_upper(std::string_view text) {
  return map_case(text, &utf8proc_toupper);
}

}  // namespace tandem::text
