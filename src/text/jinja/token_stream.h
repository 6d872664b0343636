// Tokens as the parser reads them.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "text/jinja/lexer.h"

namespace tandem::text::jinja {

/// A position in a list of tokens that ends with kEnd.
class TokenStream {
 public:
  explicit TokenStream(const std::vector<Token>& tokens) : tokens_(tokens) {}

  [[nodiscard]] const Token& current() const { return tokens_[at_]; }
  [[nodiscard]] const Token& next() const {
    return tokens_[at_ + 1 < tokens_.size() ? at_ + 1 : at_];
  }
  const Token& take();
  void skip() { take(); }

  [[nodiscard]] bool is(TokenType type) const { return current().type == type; }
  [[nodiscard]] bool is_operator(std::string_view op) const;
  [[nodiscard]] bool is_name(std::string_view name) const;
  bool skip_operator(std::string_view op);
  bool skip_name(std::string_view name);
  void expect_operator(std::string_view op);
  void expect_name(std::string_view name);
  const Token& expect(TokenType type);

  [[nodiscard]] std::size_t position() const { return at_; }
  /// Whether a token since `from` is this name.
  [[nodiscard]] bool mentions(std::string_view name, std::size_t from) const;

  /// Throws "expected WANTED, got ..." at the current token.
  [[noreturn]] void refuse(std::string_view wanted) const;

 private:
  const std::vector<Token>& tokens_;
  std::size_t at_ = 0;
};

}  // namespace tandem::text::jinja
