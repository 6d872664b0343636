#include "rewards/math/hendrycks.h"

#include <cctype>

#include "rewards/builtin/text.h"

namespace tandem::rewards {
namespace {

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos;
       at = text.find(separator, start)) {
    parts.push_back(text.substr(start, at - start));
    start = at + separator.size();
  }
  parts.push_back(text.substr(start));
  return parts;
}

// A unit on the right is written as "\text{ unit}", with the space.
std::string without_unit(const std::string& text) {
  const auto parts = split(text, "\\text{ ");
  return parts.size() == 2 ? parts[0] : text;
}

// \sqrt3 to \sqrt{3}
std::string with_braced_roots(const std::string& text) {
  const auto parts = split(text, "\\sqrt");
  std::string result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const bool bare = !part.empty() && part[0] != '{';
    result += "\\sqrt" + (bare ? "{" + part.substr(0, 1) + "}" + part.substr(1) : part);
  }
  return result;
}

// \frac12 to \frac{1}{2}, \frac1{72} to \frac{1}{72}
std::string with_braced_fractions(const std::string& text) {
  const auto parts = split(text, "\\frac");
  std::string result = parts[0];
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    result += "\\frac";
    if (part.empty() || part[0] == '{') {
      result += part;
      continue;
    }
    if (part.size() < 2) {
      return text;
    }
    result += "{" + part.substr(0, 1) + "}";
    result += part[1] == '{' ? part.substr(1) : "{" + part.substr(1, 1) + "}" + part.substr(2);
  }
  return result;
}

bool is_integer(std::string_view text) {
  const std::size_t sign = !text.empty() && text[0] == '-' ? 1 : 0;
  return text.size() > sign && text.find_first_not_of("0123456789", sign) == std::string_view::npos;
}

// The whole answer a/b to \frac{a}{b}
std::string with_slash_as_fraction(const std::string& text) {
  const auto parts = split(text, "/");
  if (parts.size() != 2 || !is_integer(parts[0]) || !is_integer(parts[1])) {
    return text;
  }
  return "\\frac{" + parts[0] + "}{" + parts[1] + "}";
}

// One past the brace that closes the one before `start`, or the end of the text.
std::size_t closing_brace(std::string_view text, std::size_t start) {
  int depth = 1;
  for (std::size_t i = start; i < text.size(); ++i) {
    const bool escaped = text[i - 1] == '\\';
    depth += escaped ? 0 : text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
    if (depth == 0) {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

std::optional<Box> box_at(std::string_view text, std::size_t start, std::size_t name_size) {
  const std::size_t after = start + name_size;
  if (after < text.size() && text[after] == '{') {
    const std::size_t end = closing_brace(text, after + 1);
    const std::size_t stop = end == std::string_view::npos ? text.size() : end;
    const std::size_t size = end == std::string_view::npos ? stop - after - 1 : stop - after - 2;
    return Box{start, stop, text.substr(after + 1, size)};
  }
  if (after < text.size() && text[after] == ' ') {
    const std::size_t dollar = std::min(text.find('$', after), text.size());
    return Box{start, dollar, text.substr(after + 1, dollar - after - 1)};
  }
  return std::nullopt;
}

}  // namespace

std::vector<Box> boxes(std::string_view text) {
  std::vector<Box> all;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t boxed = text.find("\\boxed", at);
    const std::size_t fbox = text.find("\\fbox", at);
    const std::size_t start = std::min(boxed, fbox);
    if (start == std::string_view::npos) {
      break;
    }
    const auto box = box_at(text, start, start == boxed ? 6 : 5);
    if (box) {
      all.push_back(*box);
    }
    at = box ? box->end : start + 5;
  }
  return all;
}

std::string hendrycks_normal_form(std::string_view answer) {
  std::string text(answer);
  replace_all(text, "\n", "");
  replace_all(text, "\\!", "");
  replace_all(text, "\\\\", "\\");
  replace_all(text, "tfrac", "frac");
  replace_all(text, "dfrac", "frac");
  for (const char* dropped : {"\\left", "\\right", "^{\\circ}", "^\\circ", "\\$"}) {
    replace_all(text, dropped, "");
  }
  text = without_unit(text);
  replace_all(text, "\\%", "");
  replace_all(text, "%", "");
  replace_all(text, " .", " 0.");
  replace_all(text, "{.", "{0.");
  if (!text.empty() && text[0] == '.') {
    text.insert(text.begin(), '0');
  }
  const auto sides = split(text, "=");
  if (sides.size() == 2 && sides[0].size() <= 2) {
    text = sides[1];
  }
  text = with_braced_roots(text);
  replace_all(text, " ", "");
  text = with_braced_fractions(text);
  if (text == "0.5") {
    text = "\\frac{1}{2}";
  }
  return with_slash_as_fraction(text);
}

bool hendrycks_equal(std::string_view a, std::string_view b) {
  return hendrycks_normal_form(a) == hendrycks_normal_form(b);
}

}  // namespace tandem::rewards
