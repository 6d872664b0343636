#include "text/jinja/text_functions.h"

#include <algorithm>

#include "text/jinja/template_space.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

constexpr std::int64_t kMaxWidth = 1 << 20;

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = decode_utf8(text, at).length;
    out.push_back(text.substr(at, length));
    at += length;
  }
  return out;
}

template <class Predicate>
bool all_characters(std::string_view text, const Predicate& wanted) {
  for (std::size_t at = 0; at < text.size();) {
    const Decoded c = decode_utf8(text, at);
    if (!wanted(c.code)) {
      return false;
    }
    at += c.length;
  }
  return !text.empty();
}

bool is_space_character(std::string_view c) {
  return is_python_space(decode_utf8(c, 0).code);
}

}  // namespace

std::string strip(std::string_view text, bool left, bool right, const std::string* set) {
  const auto goes = [&](std::string_view c) {
    return set == nullptr ? is_space_character(c) : set->find(c) != std::string::npos;
  };
  const auto characters = characters_of(text);
  std::size_t begin = 0;
  std::size_t end = characters.size();
  while (left && begin < end && goes(characters[begin])) {
    ++begin;
  }
  while (right && end > begin && goes(characters[end - 1])) {
    --end;
  }
  std::string out;
  for (std::size_t i = begin; i < end; ++i) {
    out += characters[i];
  }
  return out;
}

std::vector<std::string> split_words(std::string_view text, std::int64_t most, bool from_right) {
  // From the right is from the left over the characters in reverse order.
  auto characters = characters_of(text);
  if (from_right) {
    std::ranges::reverse(characters);
  }
  std::vector<std::vector<std::string_view>> words;
  std::size_t at = 0;
  const auto skip_space = [&] {
    while (at < characters.size() && is_space_character(characters[at])) {
      ++at;
    }
  };
  for (skip_space(); at < characters.size(); skip_space()) {
    std::vector<std::string_view>& word = words.emplace_back();
    const bool rest = most >= 0 && static_cast<std::int64_t>(words.size()) > most;
    while (at < characters.size() && (rest || !is_space_character(characters[at]))) {
      word.push_back(characters[at++]);
    }
    // The uncut rest loses the white space at its far end only from the right, where it is the
    // text's start.
    while (rest && from_right && !word.empty() && is_space_character(word.back())) {
      word.pop_back();
    }
  }
  std::vector<std::string> out;
  for (auto& word : words) {
    if (from_right) {
      std::ranges::reverse(word);
    }
    std::string& joined = out.emplace_back();
    for (const std::string_view c : word) {
      joined += c;
    }
  }
  if (from_right) {
    std::ranges::reverse(out);
  }
  return out;
}

std::vector<std::string> split_at(std::string_view text,
                                  std::string_view separator,
                                  std::int64_t most,
                                  bool from_right) {
  std::vector<std::string> parts;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = from_right ? text.rfind(separator) : text.find(separator);
    if (at == std::string_view::npos) {
      break;
    }
    const std::string_view after = text.substr(at + separator.size());
    parts.emplace_back(from_right ? after : text.substr(0, at));
    text = from_right ? text.substr(0, at) : after;
  }
  parts.emplace_back(text);
  if (from_right) {
    std::ranges::reverse(parts);
  }
  return parts;
}

std::vector<std::string> split_lines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t at = std::min(text.find_first_of("\n\r\v\f", begin), text.size());
    const bool pair = text.substr(at).starts_with("\r\n");
    const std::size_t next = std::min(text.size(), at + (pair ? 2 : 1));
    lines.emplace_back(text.substr(begin, (keep_ends ? next : at) - begin));
    begin = next;
  }
  return lines;
}

std::string replace(std::string_view text,
                    std::string_view from,
                    std::string_view to,
                    std::int64_t most) {
  std::string out;
  std::int64_t done = 0;
  const auto may = [&] { return most < 0 || done < most; };
  if (from.empty()) {
    for (const std::string_view c : characters_of(text)) {
      out += may() ? (++done, to) : std::string_view();
      out += c;
    }
    out += may() ? to : std::string_view();
    return out;
  }
  std::size_t at = 0;
  for (std::size_t found = text.find(from); found != std::string_view::npos && may();
       found = text.find(from, at)) {
    out += text.substr(at, found - at);
    out += to;
    at = found + from.size();
    ++done;
  }
  out += text.substr(at);
  return out;
}

std::string pad(std::string_view text, std::int64_t width, char align, const std::string& fill) {
  if (width > kMaxWidth) {
    throw TemplateError("a width is too large");
  }
  const std::int64_t missing = width - static_cast<std::int64_t>(count_characters(text));
  if (missing <= 0) {
    return std::string(text);
  }
  // Python puts the odd one of centered text to the left where the width is odd.
  const std::int64_t left = align == '<'   ? 0
                            : align == '>' ? missing
                                           : missing / 2 + (missing & width & 1);
  std::string out;
  for (std::int64_t i = 0; i < left; ++i) {
    out += fill;
  }
  out += text;
  for (std::int64_t i = left; i < missing; ++i) {
    out += fill;
  }
  return out;
}

std::string capitalize(std::string_view text) {
  const std::size_t first = text.empty() ? 0 : decode_utf8(text, 0).length;
  return to_upper(text.substr(0, first)) + to_lower(text.substr(first));
}

std::string title_case(std::string_view text) {
  std::string out;
  bool in_word = false;
  for (const std::string_view c : characters_of(text)) {
    const std::string lower = to_lower(c);
    const std::string upper = to_upper(c);
    out += in_word ? lower : upper;
    in_word = lower != upper;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (const std::string_view c : characters_of(text)) {
    const std::string lower = to_lower(c);
    out += lower == c ? to_upper(c) : lower;
  }
  return out;
}

bool is_alphanumeric(std::string_view text) {
  return all_characters(
      text, [](char32_t c) { return class_of(c) == kLetter || class_of(c) == kNumber; });
}

bool is_alphabetic(std::string_view text) {
  return all_characters(text, [](char32_t c) { return class_of(c) == kLetter; });
}

bool is_decimal(std::string_view text) {
  return all_characters(text, [](char32_t c) { return class_of(c) == kNumber && is_word(c); });
}

bool is_numeric(std::string_view text) {
  return all_characters(text, [](char32_t c) { return class_of(c) == kNumber; });
}

bool is_blank(std::string_view text) {
  return all_characters(text, is_python_space);
}

bool is_lower_case(std::string_view text) {
  return text == to_lower(text) && text != to_upper(text);
}

bool is_upper_case(std::string_view text) {
  return text == to_upper(text) && text != to_lower(text);
}

}  // namespace tandem::text::jinja
