// Members, subscripts, calls, filters and tests: what follows a primary expression.
#include <charconv>
#include <utility>

#include "text/jinja/expression_parser.h"

namespace tandem::text::jinja {

ExpressionPtr ExpressionParser::parse_postfix(ExpressionPtr node) {
  while (true) {
    if (s_.is_operator(".")) {
      node = parse_member(std::move(node));
    } else if (s_.is_operator("[")) {
      node = parse_subscript(std::move(node));
    } else if (s_.is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_filter_or_test(ExpressionPtr node) {
  while (true) {
    if (s_.is_operator("|")) {
      s_.skip();
      node = parse_filter(std::move(node));
    } else if (s_.is_name("is")) {
      s_.skip();
      node = parse_test(std::move(node));
    } else if (s_.is_operator("(")) {
      node = parse_call(std::move(node));
    } else {
      return node;
    }
  }
}

ExpressionPtr ExpressionParser::parse_member(ExpressionPtr node) {
  const int line = s_.take().line;
  const Token& token = s_.take();
  if (token.type == TokenType::kName) {
    auto member = make(ExpressionKind::kMember, line);
    member->name = token.text;
    adopt(*member, std::move(node));
    return member;
  }
  std::int64_t index = 0;
  const char* end = token.text.data() + token.text.size();
  if (token.type != TokenType::kInteger ||
      std::from_chars(token.text.data(), end, index).ptr != end) {
    throw TemplateError("expected a name or number after '.'", line);
  }
  auto item = make(ExpressionKind::kItem, line);
  adopt(*item, std::move(node));
  auto key = make(ExpressionKind::kConstant, line);
  key->constant = make_int(index);
  adopt(*item, std::move(key));
  return item;
}

ExpressionPtr ExpressionParser::parse_subscript(ExpressionPtr node) {
  const int line = s_.take().line;
  auto tuple = make(ExpressionKind::kTuple, line);  // of what stands between the commas
  bool one = true;
  while (!s_.is_operator("]")) {
    adopt(*tuple, parse_slice_or_index());
    if (!s_.skip_operator(",")) {
      break;
    }
    one = false;
  }
  s_.expect_operator("]");
  ExpressionPtr key =
      one && !tuple->children.empty() ? std::move(tuple->children[0]) : std::move(tuple);
  if (key->kind == ExpressionKind::kSlice) {
    auto slice = make(ExpressionKind::kSlice, line);
    adopt(*slice, std::move(node));
    for (ExpressionPtr& bound : key->children) {
      adopt(*slice, std::move(bound));
    }
    return slice;
  }
  auto item = make(ExpressionKind::kItem, line);
  adopt(*item, std::move(node));
  adopt(*item, std::move(key));
  return item;
}

// index, or begin : end : step with any of the three left out; what is sliced comes in front of
// these three later.
ExpressionPtr ExpressionParser::parse_slice_or_index() {
  const int line = s_.current().line;
  ExpressionPtr begin = s_.is_operator(":") ? nullptr : parse_expression();
  if (!s_.is_operator(":")) {
    return begin;
  }
  auto slice = make(ExpressionKind::kSlice, line);
  adopt(*slice, std::move(begin));
  for (int part = 0; part < 2; ++part) {
    const bool given = s_.skip_operator(":") && !s_.is_operator(":") && !s_.is_operator("]");
    adopt(*slice, given ? parse_expression() : nullptr);
  }
  return slice;
}

ExpressionPtr ExpressionParser::parse_call(ExpressionPtr callee) {
  auto call = make(ExpressionKind::kCall, s_.current().line);
  adopt(*call, std::move(callee));
  parse_arguments(*call);
  return call;
}

void ExpressionParser::parse_arguments(Expression& call) {
  s_.expect_operator("(");
  while (!s_.is_operator(")")) {
    parse_argument(call);
    if (!s_.is_operator(")")) {
      s_.expect_operator(",");
    }
  }
  s_.skip();
}

void ExpressionParser::parse_argument(Expression& call) {
  CallSyntax& arguments = call.arguments;
  const auto parse_counted = [&] {
    ExpressionPtr value = parse_expression();
    adopt(call, std::move(value));  // for the depth check
    value = std::move(call.children.back());
    call.children.pop_back();
    return value;
  };
  if (s_.skip_operator("*")) {
    arguments.list = parse_counted();
  } else if (s_.skip_operator("**")) {
    arguments.dict = parse_counted();
  } else if (s_.is(TokenType::kName) && s_.next().type == TokenType::kOperator &&
             s_.next().text == "=") {
    const std::string name = s_.take().text;
    s_.skip();
    arguments.named.push_back({name, parse_counted()});
  } else if (!arguments.named.empty() || arguments.dict != nullptr) {
    throw TemplateError("a positional argument follows a named one", s_.current().line);
  } else {
    arguments.positional.push_back(parse_counted());
  }
}

std::string ExpressionParser::parse_dotted_name() {
  std::string name = s_.expect(TokenType::kName).text;
  while (s_.skip_operator(".")) {
    name += "." + s_.expect(TokenType::kName).text;
  }
  return name;
}

ExpressionPtr ExpressionParser::parse_filter(ExpressionPtr input) {
  auto filter = make(ExpressionKind::kFilter, s_.current().line);
  filter->name = parse_dotted_name();
  adopt(*filter, std::move(input));
  if (s_.is_operator("(")) {
    parse_arguments(*filter);
  }
  return filter;
}

ExpressionPtr ExpressionParser::parse_filters(ExpressionPtr input, bool first_without_pipe) {
  if (first_without_pipe) {
    input = parse_filter(std::move(input));
  }
  while (s_.skip_operator("|")) {
    input = parse_filter(std::move(input));
  }
  return input;
}

ExpressionPtr ExpressionParser::parse_test(ExpressionPtr input) {
  const int line = s_.current().line;
  const bool negated = s_.skip_name("not");
  auto test = make(ExpressionKind::kTest, line);
  test->name = parse_dotted_name();
  adopt(*test, std::move(input));
  const bool operand = s_.is(TokenType::kString) || s_.is(TokenType::kInteger) ||
                       s_.is(TokenType::kFloat) || s_.is_operator("[") || s_.is_operator("{");
  const bool word =
      s_.is(TokenType::kName) && !s_.is_name("else") && !s_.is_name("or") && !s_.is_name("and");
  if (s_.is_operator("(")) {
    parse_arguments(*test);
  } else if (s_.is_name("is")) {
    throw TemplateError("tests cannot be chained with 'is'", line);
  } else if (operand || word) {
    test->arguments.positional.push_back(parse_operand());
  }
  if (!negated) {
    return test;
  }
  auto node = make(ExpressionKind::kUnary, line);
  node->name = "not";
  adopt(*node, std::move(test));
  return node;
}

}  // namespace tandem::text::jinja
