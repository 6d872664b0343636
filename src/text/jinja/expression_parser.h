// The expression half of the parser.
#pragma once

#include <string>

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace tandem::text::jinja {

/// Recursive descent with Jinja's precedences. Not thread safe; refers to the stream.
class ExpressionParser {
 public:
  explicit ExpressionParser(TokenStream& stream) : s_(stream) {}

  /// A condition without "a if b else c" where `conditional` is false.
  ExpressionPtr parse_expression(bool conditional = true);

  /// One expression, or a tuple of several without parentheses.
  ExpressionPtr parse_tuple(bool conditional = true, bool parenthesized = false);

  ExpressionPtr parse_unary(bool with_filter = true);

  /// The filters of a filter block or a set block, applied to nothing yet.
  ExpressionPtr parse_filters(ExpressionPtr input, bool first_without_pipe);

 private:
  class DepthGuard;

  ExpressionPtr make(ExpressionKind kind, int line);
  static void adopt(Expression& parent, ExpressionPtr child);

  ExpressionPtr parse_conditional();
  ExpressionPtr parse_or();
  ExpressionPtr parse_and();
  ExpressionPtr parse_not();
  ExpressionPtr parse_compare();
  ExpressionPtr parse_sum();
  ExpressionPtr parse_concatenation();
  ExpressionPtr parse_product();
  ExpressionPtr parse_power();
  ExpressionPtr parse_primary();
  ExpressionPtr parse_operand();
  ExpressionPtr parse_constant_or_name();
  ExpressionPtr parse_list();
  ExpressionPtr parse_dict();
  ExpressionPtr parse_postfix(ExpressionPtr node);
  ExpressionPtr parse_filter_or_test(ExpressionPtr node);
  ExpressionPtr parse_member(ExpressionPtr node);
  ExpressionPtr parse_subscript(ExpressionPtr node);
  ExpressionPtr parse_slice_or_index();
  ExpressionPtr parse_call(ExpressionPtr callee);
  ExpressionPtr parse_filter(ExpressionPtr input);
  ExpressionPtr parse_test(ExpressionPtr input);
  ExpressionPtr binary(std::string op, ExpressionPtr left, ExpressionPtr right, int line);
  void parse_arguments(Expression& call);
  void parse_argument(Expression& call);
  std::string parse_dotted_name();
  [[nodiscard]] bool at_tuple_end() const;

  TokenStream& s_;
  int nesting_ = 0;
};

}  // namespace tandem::text::jinja
