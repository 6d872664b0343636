// Reads texts and numbers from a JSON object's top level: enough for a reward, without a library.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

namespace tandem {
inline namespace reward_abi_1 {

/// A view of one JSON object. Nested values come back as their JSON text.
class JsonObject {
 public:
  explicit JsonObject(std::string_view text) : text_(text) {}

  [[nodiscard]] std::string_view text() const { return text_; }

  /// The value of a string, unescaped; of anything else its JSON text. Nothing without such a key.
  [[nodiscard]] std::optional<std::string> string(std::string_view key) const {
    const auto value = find(key);
    if (!value) {
      return std::nullopt;
    }
    return value->front() == '"' ? unescape(*value) : std::string(*value);
  }

  /// A number, or true and false as 1 and 0. Nothing for other values.
  [[nodiscard]] std::optional<double> number(std::string_view key) const {
    const auto value = find(key);
    if (!value || *value == "null") {
      return std::nullopt;
    }
    if (*value == "true" || *value == "false") {
      return *value == "true" ? 1.0 : 0.0;
    }
    const std::string digits(*value);
    char* end = nullptr;
    const double parsed = std::strtod(digits.c_str(), &end);
    return *end == '\0' ? std::optional<double>(parsed) : std::nullopt;
  }

  [[nodiscard]] bool contains(std::string_view key) const { return find(key).has_value(); }

 private:
  [[nodiscard]] std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && std::string_view(" \t\r\n").find(text_[at]) != text_.npos) {
      ++at;
    }
    return at;
  }

  // One past the string that starts at `at`.
  [[nodiscard]] std::size_t skip_string(std::size_t at) const {
    for (++at; at < text_.size() && text_[at] != '"'; ++at) {
      at += text_[at] == '\\' ? 1 : 0;
    }
    return at + 1;
  }

  // One past the value that starts at `at`: a string, or up to the comma or bracket outside it.
  [[nodiscard]] std::size_t skip_value(std::size_t at) const {
    int depth = 0;
    while (at < text_.size()) {
      const char c = text_[at];
      if (c == '"') {
        at = skip_string(at);
        continue;
      }
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
        break;
      }
      depth += (c == '{' || c == '[') ? 1 : (c == '}' || c == ']') ? -1 : 0;
      ++at;
    }
    return at < text_.size() ? at : text_.size();
  }

  [[nodiscard]] std::optional<std::string_view> find(std::string_view key) const {
    std::size_t at = skip_space(0);
    if (at >= text_.size() || text_[at] != '{') {
      return std::nullopt;
    }
    at = skip_space(at + 1);
    while (at < text_.size() && text_[at] == '"') {
      const std::size_t key_end = skip_string(at);
      const std::size_t colon = skip_space(key_end);
      if (colon >= text_.size() || text_[colon] != ':') {
        return std::nullopt;
      }
      const std::size_t start = skip_space(colon + 1);
      const std::size_t end = skip_value(start);
      if (unescape(text_.substr(at, key_end - at)) == key && end > start) {
        std::string_view value = text_.substr(start, end - start);
        return value.substr(0, value.find_last_not_of(" \t\r\n") + 1);
      }
      at = end < text_.size() && text_[end] == ',' ? skip_space(end + 1) : text_.size();
    }
    return std::nullopt;
  }

  static std::uint32_t hex4(std::string_view digits) {
    return static_cast<std::uint32_t>(std::strtoul(std::string(digits).c_str(), nullptr, 16));
  }

  static void append_utf8(std::string& out, std::uint32_t code) {
    const auto put = [&out](std::uint32_t byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xC0 | (code >> 6));
    } else if (code < 0x10000) {
      put(0xE0 | (code >> 12));
      put(0x80 | ((code >> 6) & 0x3F));
    } else {
      put(0xF0 | (code >> 18));
      put(0x80 | ((code >> 12) & 0x3F));
      put(0x80 | ((code >> 6) & 0x3F));
    }
    if (code >= 0x80) {
      put(0x80 | (code & 0x3F));
    }
  }

  // `quoted` starts and ends with a quotation mark.
  static std::string unescape(std::string_view quoted) {
    const std::string_view body = quoted.substr(1, quoted.size() > 1 ? quoted.size() - 2 : 0);
    std::string out;
    for (std::size_t i = 0; i < body.size(); ++i) {
      if (body[i] != '\\' || i + 1 == body.size()) {
        out += body[i];
        continue;
      }
      const std::string_view plain = "nrtbf";
      const char kind = body[++i];
      if (kind == 'u' && i + 4 < body.size()) {
        std::uint32_t code = hex4(body.substr(i + 1, 4));
        i += 4;
        if (code >= 0xD800 && code < 0xDC00 && body.substr(i + 1, 2) == "\\u") {  // a pair
          code = 0x10000 + ((code - 0xD800) << 10) + (hex4(body.substr(i + 3, 4)) - 0xDC00);
          i += 6;
        }
        append_utf8(out, code);
      } else {
        const std::size_t place = plain.find(kind);
        out += place == plain.npos ? kind : "\n\r\t\b\f"[place];
      }
    }
    return out;
  }

  std::string_view text_;
};

}  // namespace reward_abi_1
}  // namespace tandem
