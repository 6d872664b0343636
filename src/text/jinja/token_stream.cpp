#include "text/jinja/token_stream.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "text/jinja/value.h"

namespace tandem::text::jinja {
namespace {

std::string describe(const Token& token) {
  switch (token.type) {
    case TokenType::kEnd:
      return "end of template";
    case TokenType::kBlockEnd:
      return "end of statement block";
    case TokenType::kVariableEnd:
      return "end of print statement";
    case TokenType::kData:
    case TokenType::kBlockBegin:
    case TokenType::kVariableBegin:
      return "template text";
    default:
      return "'" + token.text.substr(0, 40) + "'";
  }
}

}  // namespace

const Token& TokenStream::take() {
  const Token& token = tokens_[at_];
  at_ += token.type == TokenType::kEnd ? 0 : 1;
  return token;
}

bool TokenStream::is_operator(std::string_view op) const {
  return current().type == TokenType::kOperator && current().text == op;
}

bool TokenStream::is_name(std::string_view name) const {
  return current().type == TokenType::kName && current().text == name;
}

bool TokenStream::skip_operator(std::string_view op) {
  const bool found = is_operator(op);
  if (found) {
    skip();
  }
  return found;
}

bool TokenStream::skip_name(std::string_view name) {
  const bool found = is_name(name);
  if (found) {
    skip();
  }
  return found;
}

void TokenStream::expect_operator(std::string_view op) {
  if (!skip_operator(op)) {
    refuse(fmt::format("'{}'", op));
  }
}

void TokenStream::expect_name(std::string_view name) {
  if (!skip_name(name)) {
    refuse(fmt::format("'{}'", name));
  }
}

const Token& TokenStream::expect(TokenType type) {
  if (current().type != type) {
    const Token wanted{type, "name", 0};
    refuse(type == TokenType::kName ? "a name" : describe(wanted));
  }
  return take();
}

bool TokenStream::mentions(std::string_view name, std::size_t from) const {
  const auto begin = tokens_.begin() + static_cast<std::ptrdiff_t>(from);
  return std::any_of(begin,
                     tokens_.begin() + static_cast<std::ptrdiff_t>(at_),
                     [&](const Token& t) { return t.type == TokenType::kName && t.text == name; });
}

void TokenStream::refuse(std::string_view wanted) const {
  throw TemplateError(fmt::format("expected {}, got {}", wanted, describe(current())),
                      current().line);
}

}  // namespace tandem::text::jinja
