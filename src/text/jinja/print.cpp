#include "text/jinja/print.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

constexpr int kMinFixedExponent = -4;  // Python writes 1e-05 below it
constexpr int kMaxFixedExponent = 16;  // and 1e+16 from it on

std::string join_reprs(const std::vector<Value>& items) {
  std::string out;
  for (const Value& item : items) {
    out += (out.empty() ? "" : ", ") + to_repr(item);
  }
  return out;
}

std::string repr_of_dict(const Dict& dict) {
  std::string out;
  for (const auto& [key, value] : dict.entries) {
    out += (out.empty() ? "" : ", ") + to_repr(key) + ": " + to_repr(value);
  }
  return "{" + out + "}";
}

void append_escaped(std::string& out, char32_t code, std::string_view bytes, char quote) {
  if (code == static_cast<char32_t>(quote) || code == '\\') {
    out += '\\';
    out += static_cast<char>(code);
  } else if (code == '\n') {
    out += "\\n";
  } else if (code == '\r') {
    out += "\\r";
  } else if (code == '\t') {
    out += "\\t";
  } else if (is_printable(code)) {
    out += bytes;
  } else {
    const auto number = static_cast<std::uint32_t>(code);
    out += code < 0x100     ? fmt::format("\\x{:02x}", number)
           : code < 0x10000 ? fmt::format("\\u{:04x}", number)
                            : fmt::format("\\U{:08x}", number);
  }
}

std::string repr_of_text(const std::string& text) {
  const bool double_quotes =
      text.find('\'') != std::string::npos && text.find('"') == std::string::npos;
  const char quote = double_quotes ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    append_escaped(out, c.code, std::string_view(text).substr(at, c.length), quote);
    at += c.length;
  }
  return out + quote;
}

// "d.ddde+XX" of the shortest digits, as digits and exponent.
std::pair<std::string, int> shortest_digits(double x) {
  std::array<char, 32> buffer{};
  const auto result =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific);
  const std::string_view text(buffer.data(), result.ptr - buffer.data());
  const std::size_t e = text.find('e');
  std::string digits;
  std::ranges::copy_if(
      text.substr(0, e), std::back_inserter(digits), [](char c) { return c != '.'; });
  const std::string exponent(text.substr(e + 1));
  return {digits, std::stoi(exponent)};
}

}  // namespace

std::string print_float(double x) {
  if (std::isnan(x)) {
    return "nan";
  }
  if (std::isinf(x)) {
    return x < 0 ? "-inf" : "inf";
  }
  if (std::signbit(x)) {
    return "-" + print_float(-x);
  }
  auto [digits, exponent] = shortest_digits(x);
  if (exponent < kMinFixedExponent || exponent >= kMaxFixedExponent) {
    const std::string mantissa =
        digits.size() == 1 ? digits : digits.substr(0, 1) + "." + digits.substr(1);
    return fmt::format("{}e{}{:02}", mantissa, exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) {
    return "0." + std::string(-exponent - 1, '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) {
    return digits + std::string(whole - digits.size(), '0') + ".0";
  }
  return digits.substr(0, whole) + "." + digits.substr(whole);
}

std::string to_repr(const Value& value) {
  if (const auto* text = value.get<TextPtr>()) {
    const std::string repr = repr_of_text((*text)->text);
    return (*text)->safe ? "Markup(" + repr + ")" : repr;
  }
  return value.is_undefined() ? "Undefined" : to_string(value);
}

std::string to_string(const Value& value) {
  if (value.is_text()) {
    return value.text();
  }
  if (value.is_undefined()) {
    return "";
  }
  if (value.is_none()) {
    return "None";
  }
  if (const auto* b = value.get<bool>()) {
    return *b ? "True" : "False";
  }
  if (const auto* i = value.get<std::int64_t>()) {
    return std::to_string(*i);
  }
  if (const auto* x = value.get<double>()) {
    return print_float(*x);
  }
  if (const auto* list = value.get<ListPtr>()) {
    return "[" + join_reprs((*list)->items) + "]";
  }
  if (const auto* tuple = value.get<Tuple>()) {
    const auto& items = tuple->items->items;
    return "(" + join_reprs(items) + (items.size() == 1 ? ",)" : ")");
  }
  if (const auto* dict = value.get<DictPtr>()) {
    return repr_of_dict(**dict);
  }
  if (const auto* view = value.get<ViewPtr>()) {
    return (*view)->print.empty() ? (*view)->type + "([" + join_reprs((*view)->items) + "])"
                                  : (*view)->print;
  }
  if (const auto* callable = value.get<CallablePtr>()) {
    return "<function " + (*callable)->name + ">";
  }
  return "<" + type_name(value) + " object>";
}

std::string escape_html(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace tandem::text::jinja
