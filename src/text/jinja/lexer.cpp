#include "text/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/string_literal.h"
#include "text/jinja/template_space.h"
#include "text/jinja/value.h"
#include "text/unicode.h"

namespace tandem::text::jinja {
namespace {

// Longest first, so that the first that fits is the token.
constexpr std::array<std::string_view, 27> kOperators = {
    "//", "**", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[", "]",
    "(",  ")",  "{",  "}",  ">",  "<",  "=", ".", ":", "|", ",", ";", "!"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)), s_(source_) {}

  std::vector<Token> run() {
    while (at_ < s_.size()) {
      lex_root();
    }
    push(TokenType::kEnd, "");
    return std::move(tokens_);
  }

 private:
  void push(TokenType type, std::string text) { tokens_.push_back({type, std::move(text), line_}); }

  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(s_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         s_.begin() + static_cast<std::ptrdiff_t>(to),
                                         '\n'));
    line_starting_ = to > at_ ? s_[to - 1] == '\n' : line_starting_;
    at_ = to;
  }

  [[nodiscard]] bool looking_at(std::string_view what) const {
    return s_.substr(at_).starts_with(what);
  }

  // Data up to the next opening, then that construct.
  void lex_root() {
    std::size_t open = at_;
    while ((open = s_.find('{', open)) != std::string_view::npos) {
      const char next = open + 1 < s_.size() ? s_[open + 1] : '\0';
      if (next == '{' || next == '%' || next == '#') {
        break;
      }
      ++open;
    }
    if (open == std::string_view::npos) {
      push(TokenType::kData, std::string(s_.substr(at_)));
      advance(s_.size());
      return;
    }
    const char sign = open + 2 < s_.size() ? s_[open + 2] : '\0';
    const std::string_view text =
        strip_before(s_.substr(at_, open - at_),
                     {.sign = sign, .kind = s_[open + 1], .starts_line = line_starting_});
    if (!text.empty()) {
      push(TokenType::kData, std::string(text));
    }
    const std::size_t inside = open + (sign == '-' || sign == '+' ? 3 : 2);
    const char kind = s_[open + 1];
    advance(open);
    if (kind == '#') {
      lex_comment(inside);
    } else if (kind == '%' && try_raw(inside)) {
      return;
    } else {
      push(kind == '%' ? TokenType::kBlockBegin : TokenType::kVariableBegin, "");
      advance(inside);
      lex_code(kind == '%');
    }
  }

  // Past a closing tag of two characters at `close`, with what its sign or trim_blocks takes along.
  [[nodiscard]] std::size_t after_close(std::size_t close, bool trims) const {
    const char sign = close > 0 ? s_[close - 1] : '\0';
    std::size_t end = close + 2;
    if (sign == '-') {
      return skip_space(s_, end);
    }
    if (trims && sign != '+' && end < s_.size() && s_[end] == '\n') {
      ++end;
    }
    return end;
  }

  void lex_comment(std::size_t inside) {
    const std::size_t close = s_.find("#}", inside);
    if (close == std::string_view::npos) {
      throw TemplateError("Missing end of comment tag", line_);
    }
    // "{#-#}": the sign belongs to the opening when nothing stands between.
    advance(close == inside ? after_unsigned_close(close, true) : after_close(close, true));
  }

  // {% raw %} ... {% endraw %}
  bool try_raw(std::size_t inside) {
    std::size_t at = skip_space(s_, inside);
    if (!s_.substr(at).starts_with("raw")) {
      return false;
    }
    at = skip_space(s_, at + 3);
    at += at < s_.size() && s_[at] == '-' ? 1 : 0;
    if (!s_.substr(at).starts_with("%}")) {
      return false;
    }
    std::size_t begin = s_[at - 1] == '-' ? skip_space(s_, at + 2) : at + 2;
    for (std::size_t open = s_.find("{%", begin); open != std::string_view::npos;
         open = s_.find("{%", open + 2)) {
      const char sign = s_[open + 2];
      const std::size_t name = skip_space(s_, open + (sign == '-' || sign == '+' ? 3 : 2));
      if (!s_.substr(name).starts_with("endraw")) {
        continue;
      }
      std::size_t close = skip_space(s_, name + 6);
      close += close < s_.size() && (s_[close] == '-' || s_[close] == '+') ? 1 : 0;
      if (!s_.substr(close).starts_with("%}")) {
        continue;
      }
      line_starting_ = begin > 0 && s_[begin - 1] == '\n';
      push(TokenType::kData,
           std::string(strip_before(s_.substr(begin, open - begin),
                                    {.sign = sign, .kind = '%', .starts_line = line_starting_})));
      advance(after_close(close, true));
      return true;
    }
    throw TemplateError("Missing end of raw directive", line_);
  }

  // Tokens up to the end of the tag.
  void lex_code(bool block) {
    std::string brackets;  // open ones: inside of them }} and %} do not end the tag
    const std::string_view end = block ? "%}" : "}}";
    while (at_ < s_.size()) {
      if (brackets.empty()) {
        const bool signed_end =
            (s_[at_] == '-' || (block && s_[at_] == '+')) && s_.substr(at_ + 1).starts_with(end);
        if (signed_end || looking_at(end)) {
          push(block ? TokenType::kBlockEnd : TokenType::kVariableEnd, "");
          const std::size_t close = at_ + (signed_end ? 1 : 0);
          advance(signed_end ? after_close(close, block) : after_unsigned_close(close, block));
          return;
        }
      }
      lex_token(brackets);
    }
    throw TemplateError(fmt::format("unexpected end of template, expected '{}'", end), line_);
  }

  // As after_close, where no sign belongs to the closing tag.
  [[nodiscard]] std::size_t after_unsigned_close(std::size_t close, bool trims) const {
    const std::size_t end = close + 2;
    return trims && end < s_.size() && s_[end] == '\n' ? end + 1 : end;
  }

  void lex_token(std::string& brackets) {
    const Decoded c = decode_utf8(s_, at_);
    if (is_python_space(c.code)) {
      advance(skip_space(s_, at_));
    } else if (is_digit(s_[at_])) {
      lex_number();
    } else if (s_[at_] == '"' || s_[at_] == '\'') {
      lex_string();
    } else if (is_word(c.code)) {
      std::size_t end = at_;
      for (Decoded next = c; is_word(next.code);) {
        end += next.length;
        if (end == s_.size()) {
          break;
        }
        next = decode_utf8(s_, end);
      }
      push(TokenType::kName, std::string(s_.substr(at_, end - at_)));
      advance(end);
    } else {
      lex_operator(brackets);
    }
  }

  void lex_operator(std::string& brackets) {
    const auto found = std::ranges::find_if(kOperators, [&](auto op) { return looking_at(op); });
    if (found == kOperators.end()) {
      throw TemplateError(
          fmt::format("unexpected char '{}'", s_.substr(at_, decode_utf8(s_, at_).length)), line_);
    }
    const char c = found->front();
    if (c == '(' || c == '[' || c == '{') {
      brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets.empty() || brackets.back() != c) {
        throw TemplateError(fmt::format("unexpected '{}'", c), line_);
      }
      brackets.pop_back();
    }
    push(TokenType::kOperator, std::string(*found));
    advance(at_ + found->size());
  }

  [[nodiscard]] std::size_t digits_end(std::size_t at) const {
    while (at < s_.size() &&
           (is_digit(s_[at]) || (s_[at] == '_' && at + 1 < s_.size() && is_digit(s_[at + 1])))) {
      ++at;
    }
    return at;
  }

  void lex_number() {
    if (s_[at_] == '0' && at_ + 1 < s_.size() &&
        std::string_view("xXbBoO").find(s_[at_ + 1]) != std::string_view::npos) {
      std::size_t end = at_ + 2;
      while (end < s_.size() &&
             (std::isxdigit(static_cast<unsigned char>(s_[end])) != 0 || s_[end] == '_')) {
        ++end;
      }
      push_number(TokenType::kInteger, end);
      return;
    }
    std::size_t end = digits_end(at_);
    bool fraction = false;
    const bool after_dot = at_ > 0 && s_[at_ - 1] == '.';  // a.0.1 is two members, not 0.1
    if (!after_dot && end + 1 < s_.size() && s_[end] == '.' && is_digit(s_[end + 1])) {
      end = digits_end(end + 1);
      fraction = true;
    }
    if (!after_dot && end < s_.size() && (s_[end] == 'e' || s_[end] == 'E')) {
      std::size_t power = end + 1;
      power += power < s_.size() && (s_[power] == '+' || s_[power] == '-') ? 1 : 0;
      if (power < s_.size() && is_digit(s_[power])) {
        end = digits_end(power);
        fraction = true;
      }
    }
    push_number(fraction ? TokenType::kFloat : TokenType::kInteger, end);
  }

  void push_number(TokenType type, std::size_t end) {
    std::string digits(s_.substr(at_, end - at_));
    std::erase(digits, '_');
    push(type, std::move(digits));
    advance(end);
  }

  void lex_string() {
    const char quote = s_[at_];
    std::size_t end = at_ + 1;
    while (end < s_.size() && s_[end] != quote) {
      end += s_[end] == '\\' ? 2 : 1;
    }
    if (end >= s_.size()) {
      throw TemplateError("a string has no end", line_);
    }
    push(TokenType::kString, resolve_escapes(s_.substr(at_ + 1, end - at_ - 1), line_));
    advance(end + 1);
  }

  std::string source_;
  std::string_view s_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the text before at_ is a line's start
};

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(replace_invalid_utf8(source))).run();
}

}  // namespace tandem::text::jinja
