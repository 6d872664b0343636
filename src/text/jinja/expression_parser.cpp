#include "text/jinja/expression_parser.h"

#include <algorithm>
#include <utility>

namespace tandem::text::jinja {
namespace {

constexpr int kMaxDepth = 200;  // of one expression's tree

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

// The operand of a test without parentheses.
ExpressionPtr ExpressionParser::parse_operand() {
  const DepthGuard guard(*this);
  return parse_postfix(parse_primary());
}

}  // namespace tandem::text::jinja
