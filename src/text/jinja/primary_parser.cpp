// The primaries of an expression: constants, names, tuples, lists and dictionaries.
#include <charconv>
#include <cstdlib>
#include <utility>

#include "text/jinja/expression_parser.h"

namespace tandem::text::jinja {
namespace {

Value parse_integer(const Token& token) {
  std::string_view digits = token.text;
  int base = 10;
  if (digits.size() > 2 && digits[0] == '0' && digits[1] > '9') {
    const char c = static_cast<char>(digits[1] | 0x20);
    base = c == 'x' ? 16 : c == 'o' ? 8 : 2;
    digits.remove_prefix(2);
  }
  std::int64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw TemplateError("integer " + token.text + " is out of range", token.line);
  }
  return make_int(value);
}

}  // namespace

ExpressionPtr ExpressionParser::parse_primary() {
  const Token& token = s_.current();
  switch (token.type) {
    case TokenType::kName:
      return parse_constant_or_name();
    case TokenType::kString: {
      auto node = make(ExpressionKind::kConstant, token.line);
      std::string text;
      while (s_.is(TokenType::kString)) {
        text += s_.take().text;
      }
      node->constant = make_text(std::move(text));
      return node;
    }
    case TokenType::kInteger: {
      auto node = make(ExpressionKind::kConstant, token.line);
      node->constant = parse_integer(s_.take());
      return node;
    }
    case TokenType::kFloat: {
      auto node = make(ExpressionKind::kConstant, token.line);
      node->constant = Value::Variant(std::strtod(s_.take().text.c_str(), nullptr));
      return node;
    }
    default:
      break;
  }
  if (s_.skip_operator("(")) {
    ExpressionPtr node = parse_tuple(true, true);
    s_.expect_operator(")");
    return node;
  }
  if (s_.is_operator("[")) {
    return parse_list();
  }
  if (s_.is_operator("{")) {
    return parse_dict();
  }
  s_.refuse("an expression");
}

ExpressionPtr ExpressionParser::parse_constant_or_name() {
  const Token& token = s_.take();
  auto node = make(ExpressionKind::kConstant, token.line);
  if (token.text == "true" || token.text == "True") {
    node->constant = make_bool(true);
  } else if (token.text == "false" || token.text == "False") {
    node->constant = make_bool(false);
  } else if (token.text == "none" || token.text == "None") {
    node->constant = make_none();
  } else {
    node->kind = ExpressionKind::kName;
    node->name = token.text;
  }
  return node;
}

bool ExpressionParser::at_tuple_end() const {
  return s_.is(TokenType::kVariableEnd) || s_.is(TokenType::kBlockEnd) || s_.is_operator(")") ||
         s_.is_name("recursive");
}

ExpressionPtr ExpressionParser::parse_tuple(bool conditional, bool parenthesized) {
  auto tuple = make(ExpressionKind::kTuple, s_.current().line);
  bool has_comma = false;
  // The first element may be a variable called like a word that ends a tuple ("if in in x").
  const bool empty =
      s_.is_operator(")") || s_.is(TokenType::kVariableEnd) || s_.is(TokenType::kBlockEnd);
  while (!empty) {
    adopt(*tuple, parse_expression(conditional));
    if (!s_.skip_operator(",")) {
      break;
    }
    has_comma = true;
    if (at_tuple_end()) {
      break;
    }
  }
  if (!has_comma && tuple->children.size() == 1) {
    return std::move(tuple->children[0]);
  }
  if (tuple->children.empty() && !parenthesized) {
    s_.refuse("an expression");
  }
  return tuple;
}

ExpressionPtr ExpressionParser::parse_list() {
  auto node = make(ExpressionKind::kList, s_.take().line);
  while (!s_.is_operator("]")) {
    adopt(*node, parse_expression());
    if (!s_.is_operator("]")) {
      s_.expect_operator(",");
    }
  }
  s_.skip();
  return node;
}

ExpressionPtr ExpressionParser::parse_dict() {
  auto node = make(ExpressionKind::kDict, s_.take().line);
  while (!s_.is_operator("}")) {
    adopt(*node, parse_expression());
    s_.expect_operator(":");
    adopt(*node, parse_expression());
    if (!s_.is_operator("}")) {
      s_.expect_operator(",");
    }
  }
  s_.skip();
  return node;
}

}  // namespace tandem::text::jinja
