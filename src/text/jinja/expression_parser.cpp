#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace tandem::text::jinja {
namespace {

constexpr int kMaxDepth = 200;  // of one expression's tree

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

// Bounds the recursion of the parser itself.
class ExpressionParser::DepthGuard {
 public:
  explicit DepthGuard(ExpressionParser& parser) : parser_(parser) {
    if (++parser_.nesting_ > kMaxDepth) {
      --parser_.nesting_;
      throw TemplateError("an expression is nested too deeply", parser_.s_.current().line);
    }
  }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;
  ~DepthGuard() { --parser_.nesting_; }

 private:
  ExpressionParser& parser_;
};

ExpressionPtr ExpressionParser::make(ExpressionKind kind, int line) {
  auto node = std::make_unique<Expression>();
  node->kind = kind;
  node->line = line;
  return node;
}

void ExpressionParser::adopt(Expression& parent, ExpressionPtr child) {
  if (child != nullptr) {
    parent.depth = std::max(parent.depth, child->depth + 1);
    if (parent.depth > kMaxDepth) {
      throw TemplateError("an expression is nested too deeply", parent.line);
    }
  }
  parent.children.push_back(std::move(child));
}

ExpressionPtr ExpressionParser::binary(std::string op,
                                       ExpressionPtr left,
                                       ExpressionPtr right,
                                       int line) {
  auto node = make(ExpressionKind::kBinary, line);
  node->name = std::move(op);
  adopt(*node, std::move(left));
  adopt(*node, std::move(right));
  return node;
}

ExpressionPtr ExpressionParser::parse_expression(bool conditional) {
  const DepthGuard guard(*this);
  return conditional ? parse_conditional() : parse_or();
}

ExpressionPtr ExpressionParser::parse_conditional() {
  ExpressionPtr value = parse_or();
  while (s_.is_name("if")) {
    auto node = make(ExpressionKind::kConditional, s_.take().line);
    adopt(*node, parse_or());
    adopt(*node, std::move(value));
    adopt(*node, s_.skip_name("else") ? parse_expression() : nullptr);
    value = std::move(node);
  }
  return value;
}

ExpressionPtr ExpressionParser::parse_or() {
  ExpressionPtr left = parse_and();
  while (s_.is_name("or")) {
    const int line = s_.take().line;
    left = binary("or", std::move(left), parse_and(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_and() {
  ExpressionPtr left = parse_not();
  while (s_.is_name("and")) {
    const int line = s_.take().line;
    left = binary("and", std::move(left), parse_not(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_not() {
  if (!s_.is_name("not")) {
    return parse_compare();
  }
  const DepthGuard guard(*this);
  auto node = make(ExpressionKind::kUnary, s_.take().line);
  node->name = "not";
  adopt(*node, parse_not());
  return node;
}

ExpressionPtr ExpressionParser::parse_compare() {
  const int line = s_.current().line;
  ExpressionPtr first = parse_sum();
  ExpressionPtr node;
  const auto add = [&](std::string op) {
    if (node == nullptr) {
      node = make(ExpressionKind::kCompare, line);
      adopt(*node, std::move(first));
    }
    node->operators.push_back(std::move(op));
    adopt(*node, parse_sum());
  };
  while (true) {
    const bool negated =
        s_.is_name("not") && s_.next().type == TokenType::kName && s_.next().text == "in";
    if (negated || s_.is_name("in")) {
      s_.skip();
      if (negated) {
        s_.skip();
      }
      add(negated ? "not in" : "in");
      continue;
    }
    static constexpr std::string_view kComparisons[] = {"==", "!=", "<", "<=", ">", ">="};
    const bool compares =
        s_.is(TokenType::kOperator) &&
        std::ranges::find(kComparisons, s_.current().text) != std::end(kComparisons);
    if (!compares) {
      return node == nullptr ? std::move(first) : std::move(node);
    }
    add(s_.take().text);
  }
}

ExpressionPtr ExpressionParser::parse_sum() {
  ExpressionPtr left = parse_concatenation();
  while (s_.is_operator("+") || s_.is_operator("-")) {
    const Token& op = s_.take();
    left = binary(op.text, std::move(left), parse_concatenation(), op.line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_concatenation() {
  ExpressionPtr left = parse_product();
  while (s_.is_operator("~")) {
    const int line = s_.take().line;
    left = binary("~", std::move(left), parse_product(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_product() {
  ExpressionPtr left = parse_power();
  while (s_.is_operator("*") || s_.is_operator("/") || s_.is_operator("//") ||
         s_.is_operator("%")) {
    const Token& op = s_.take();
    left = binary(op.text, std::move(left), parse_power(), op.line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_power() {
  ExpressionPtr left = parse_unary();
  while (s_.is_operator("**")) {
    const int line = s_.take().line;
    left = binary("**", std::move(left), parse_unary(), line);
  }
  return left;
}

ExpressionPtr ExpressionParser::parse_unary(bool with_filter) {
  const DepthGuard guard(*this);
  ExpressionPtr node;
  if (s_.is_operator("-") || s_.is_operator("+")) {
    const Token& op = s_.take();
    node = make(ExpressionKind::kUnary, op.line);
    node->name = op.text;
    adopt(*node, parse_unary(false));
  } else {
    node = parse_primary();
  }
  node = parse_postfix(std::move(node));
  return with_filter ? parse_filter_or_test(std::move(node)) : std::move(node);
}

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

// The operand of a test without parentheses.
ExpressionPtr ExpressionParser::parse_operand() {
  const DepthGuard guard(*this);
  return parse_postfix(parse_primary());
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
