#include "app/report/html.h"

#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "app/report/style.h"

namespace tandem::app {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Bytes of the well-formed UTF-8 character at the start of `text`, or 0.
std::size_t character_size(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  const std::size_t size = first < 0x80         ? 1
                           : first >> 5 == 0x06 ? 2
                           : first >> 4 == 0x0E ? 3
                           : first >> 3 == 0x1E ? 4
                                                : 0;
  if (size == 0 || size > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < size; ++i) {
    if (byte(i) >> 6 != 0x02) {
      return 0;
    }
  }
  return size;
}

std::string_view escaped(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::string html_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const auto first = static_cast<unsigned char>(text[0]);
    if (const auto entity = escaped(text[0]); !entity.empty()) {
      out += entity;
    } else if (size == 0 || (first < 0x20 && first != '\n' && first != '\t' && first != '\r') ||
               first == 0x7F) {
      out += kReplacement;
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return out;
}

std::string html_excerpt(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) {
    return html_escape(text);
  }
  std::size_t end = max_bytes;
  while (end > 0 && static_cast<unsigned char>(text[end]) >> 6 == 0x02) {
    --end;
  }
  return html_escape(text.substr(0, end)) +
         fmt::format("<span class=cut> ... {} more bytes</span>", text.size() - end);
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (!std::isfinite(value)) {
    return "-";
  }
  if (size >= 1e9) {
    return fmt::format("{:.3g}G", value / 1e9);
  }
  if (size >= 1e6) {
    return fmt::format("{:.3g}M", value / 1e6);
  }
  if (size >= 1e4) {
    return fmt::format("{:.3g}k", value / 1e3);
  }
  if (size >= 1000) {
    return fmt::format("{:.0f}", value);
  }
  return fmt::format("{:.3g}", value);
}

std::string html_page(std::string_view title, std::string_view body) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
      html_escape(title),
      kReportStyle,
      body);
}

}  // namespace tandem::app
