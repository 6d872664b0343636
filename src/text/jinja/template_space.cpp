#include "text/jinja/template_space.h"

#include "text/unicode.h"

namespace tandem::text::jinja {

bool is_python_space(char32_t code) {
  return class_of(code) == kSpace || (code >= 0x1C && code <= 0x1F);
}

std::size_t skip_space(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Decoded c = decode_utf8(text, at);
    if (!is_python_space(c.code)) {
      break;
    }
    at += c.length;
  }
  return at;
}

std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      out += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    } else {
      out += source[i];
    }
  }
  if (out.ends_with('\n')) {
    out.pop_back();  // keep_trailing_newline is off
  }
  return out;
}

std::string_view strip_before(std::string_view text, const OpeningTag& tag) {
  if (tag.sign == '-') {
    while (!text.empty()) {
      std::size_t at = text.size() - 1;
      while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) {
        --at;
      }
      if (!is_python_space(decode_utf8(text, at).code)) {
        break;
      }
      text = text.substr(0, at);
    }
    return text;
  }
  if (tag.sign == '+' || tag.kind == '{') {
    return text;
  }
  const std::size_t newline = text.rfind('\n');
  const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
  if (line == 0 && !tag.starts_line) {
    return text;
  }
  const std::string_view rest = text.substr(line);
  for (std::size_t at = 0; at < rest.size();) {
    const Decoded c = decode_utf8(rest, at);
    if (!is_python_space(c.code)) {
      return text;
    }
    at += c.length;
  }
  return text.substr(0, line);
}

}  // namespace tandem::text::jinja
