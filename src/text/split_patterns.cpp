#include "text/split_patterns.h"

#include <array>

#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr std::string_view kGpt2Regex =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3Regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Char {
  std::size_t length = 0;  // 0 past the end
  char32_t code = 0;
  CharClass kind = kOther;

  [[nodiscard]] bool is(CharClass wanted) const { return length > 0 && kind == wanted; }
  [[nodiscard]] bool is_newline() const { return code == '\n' || code == '\r'; }
};

// Walks over one text. Member functions take and return byte positions.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : text_(text) {
    static const std::array<CharClass, 128> classes = [] {
      std::array<CharClass, 128> table{};
      for (char32_t code = 0; code < table.size(); ++code) {
        table[code] = class_of(code);
      }
      return table;
    }();
    ascii_ = &classes;
  }

  [[nodiscard]] Char at(std::size_t position) const {
    if (position >= text_.size()) {
      return {};
    }
    const auto byte = static_cast<unsigned char>(text_[position]);
    if (byte < 0x80) {
      return {.length = 1, .code = byte, .kind = (*ascii_)[byte]};
    }
    const Decoded c = decode_utf8(text_, position);
    return {.length = c.length, .code = c.code, .kind = class_of(c.code)};
  }

  [[nodiscard]] std::size_t run_end(std::size_t position, CharClass kind) const {
    for (Char c = at(position); c.is(kind); c = at(position)) {
      position += c.length;
    }
    return position;
  }

  [[nodiscard]] std::size_t run_end(std::size_t position, CharClass kind, int most) const {
    for (Char c = at(position); most > 0 && c.is(kind); c = at(position)) {
      position += c.length;
      --most;
    }
    return position;
  }

  [[nodiscard]] std::size_t newlines_end(std::size_t position) const {
    while (position < text_.size() && (text_[position] == '\n' || text_[position] == '\r')) {
      ++position;
    }
    return position;
  }

  // The end of 's, 't, 're, 've, 'm, 'll, 'd at `position`, or `position`. Ignoring case, Unicode
  // folds the long s (U+017F) to s too.
  [[nodiscard]] std::size_t contraction_end(std::size_t position, bool any_case) const {
    if (at(position).code != '\'') {
      return position;
    }
    const Char first = at(position + 1);
    const char32_t a = fold(first.code, any_case);
    const std::size_t end = position + 1 + first.length;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
      return end;
    }
    const Char second = at(end);
    const char32_t b = fold(second.code, any_case);
    const bool pair = (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return pair ? end + second.length : position;
  }

  // \s+(?!\S)|\s+ : a run of spaces leaves its last character to what follows, if it has two.
  [[nodiscard]] std::size_t spaces_end(std::size_t position) const {
    std::size_t last = position;
    std::size_t end = position;
    for (Char c = at(end); c.is(kSpace); c = at(end)) {
      last = end;
      end += c.length;
    }
    return end == text_.size() || last == position ? end : last;
  }

  // \s*[\r\n]+ : up to the last newline of the run of spaces, or `position` where it has none.
  [[nodiscard]] std::size_t last_newline_end(std::size_t position) const {
    std::size_t found = position;
    std::size_t end = position;
    for (Char c = at(end); c.is(kSpace); c = at(end)) {
      end += c.length;
      found = c.is_newline() ? end : found;
    }
    return found;
  }

 private:
  static char32_t fold(char32_t code, bool any_case) {
    if (!any_case) {
      return code;
    }
    return code == 0x17F ? U's' : code >= 'A' && code <= 'Z' ? code + 32 : code;
  }

  std::string_view text_;
  const std::array<CharClass, 128>* ascii_ = nullptr;
};

std::size_t gpt2_end(const Cursor& cursor, std::size_t position) {
  if (const std::size_t end = cursor.contraction_end(position, false); end > position) {
    return end;
  }
  const Char first = cursor.at(position);
  const std::size_t body = first.code == ' ' ? position + 1 : position;
  const Char next = cursor.at(body);
  if (next.length > 0 && next.kind != kSpace) {
    return cursor.run_end(body, next.kind);
  }
  return cursor.spaces_end(position);
}

std::size_t qwen2_end(const Cursor& cursor, std::size_t position, int digits) {
  if (const std::size_t end = cursor.contraction_end(position, true); end > position) {
    return end;
  }
  const Char first = cursor.at(position);
  if (first.kind == kLetter) {
    return cursor.run_end(position, kLetter);
  }
  if (first.kind == kNumber) {
    return cursor.run_end(position, kNumber, digits);
  }
  const std::size_t second = position + first.length;
  if (!first.is_newline() && cursor.at(second).is(kLetter)) {
    return cursor.run_end(second, kLetter);
  }
  const std::size_t body = first.code == ' ' ? second : position;
  if (cursor.at(body).is(kOther)) {
    return cursor.newlines_end(cursor.run_end(body, kOther));
  }
  if (const std::size_t end = cursor.last_newline_end(position); end > position) {
    return end;
  }
  return cursor.spaces_end(position);
}

template <class NextEnd>
void split_all(std::string_view text, const NextEnd& next_end, std::vector<std::string_view>& out) {
  const Cursor cursor(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = next_end(cursor, at);
    out.push_back(text.substr(at, end - at));
    at = end;
  }
}

}  // namespace

std::string_view regex_of(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return kGpt2Regex;
    case SplitPattern::kQwen2:
      return kQwen2Regex;
    case SplitPattern::kLlama3:
      break;
  }
  return kLlama3Regex;
}

std::optional<SplitPattern> known_pattern(std::string_view regex) {
  for (const auto pattern : {SplitPattern::kGpt2, SplitPattern::kQwen2, SplitPattern::kLlama3}) {
    if (regex == regex_of(pattern)) {
      return pattern;
    }
  }
  return std::nullopt;
}

void split_known(SplitPattern pattern, std::string_view text, std::vector<std::string_view>& out) {
  if (pattern == SplitPattern::kGpt2) {
    split_all(text, gpt2_end, out);
    return;
  }
  const int digits = pattern == SplitPattern::kLlama3 ? 3 : 1;
  const auto next_end = [digits](const Cursor& cursor, std::size_t position) {
    return qwen2_end(cursor, position, digits);
  };
  split_all(text, next_end, out);
}

}  // namespace tandem::text
