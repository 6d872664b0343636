// A place in a text, and what can be taken from there.
#pragma once

#include <cctype>
#include <string_view>

namespace tandem::rewards {

inline bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
inline bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0;
}

/// Blanks before a token are skipped; past the end there are NULs.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  void skip_space() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
      ++at_;
    }
  }
  [[nodiscard]] char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  /// Takes `token` if it comes next.
  bool take(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) {
      return false;
    }
    // A command ends where its letters end: \pi is not the start of \pitch.
    const std::size_t end = at_ + token.size();
    if (token.size() > 1 && token[0] == '\\' && is_letter(token.back()) && end < text_.size() &&
        is_letter(text_[end])) {
      return false;
    }
    at_ = end;
    return true;
  }
  /// The digits that come next, maybe none.
  std::string_view digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    return since(start);
  }

  std::string_view letters() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_letter(text_[at_])) {
      ++at_;
    }
    return since(start);
  }

  [[nodiscard]] std::string_view since(std::size_t start) const {
    return text_.substr(start, at_ - start);
  }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  [[nodiscard]] bool at_end() {
    skip_space();
    return at_ == text_.size();
  }
  /// The character before, or NUL at the start.
  [[nodiscard]] char previous() const { return at_ == 0 ? '\0' : text_[at_ - 1]; }
  [[nodiscard]] std::size_t place() const { return at_; }
  void skip(std::size_t count) { move_to(at_ + count); }
  void move_to(std::size_t place) { at_ = place < text_.size() ? place : text_.size(); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace tandem::rewards
