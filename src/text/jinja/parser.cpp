#include "text/jinja/parser.h"

#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "text/jinja/expression_parser.h"
#include "text/jinja/lexer.h"
#include "text/jinja/target_parser.h"

namespace tandem::text::jinja {
namespace {

constexpr int kMaxBlockDepth = 100;

class Parser {
 public:
  explicit Parser(const std::vector<Token>& tokens) : s_(tokens), expressions_(s_), targets_(s_) {}

  Block parse_template() {
    Block block = parse_body({});
    if (!s_.is(TokenType::kEnd)) {
      throw TemplateError(fmt::format("unexpected tag '{}'", s_.next().text), s_.current().line);
    }
    return block;
  }

 private:
  using Names = std::initializer_list<std::string_view>;

  // Statements up to a tag with one of these names, which stays to be read.
  Block parse_body(Names ends) {
    if (++depth_ > kMaxBlockDepth) {
      throw TemplateError("blocks are nested too deeply", s_.current().line);
    }
    Block block;
    while (!s_.is(TokenType::kEnd) && !at_tag(ends)) {
      parse_next(block);
    }
    if (ends.size() > 0 && s_.is(TokenType::kEnd)) {
      throw TemplateError(
          fmt::format("unexpected end of template, expected '{}'", *(ends.end() - 1)),
          s_.current().line);
    }
    --depth_;
    return block;
  }

  [[nodiscard]] bool at_tag(Names names) const {
    if (!s_.is(TokenType::kBlockBegin) || s_.next().type != TokenType::kName) {
      return false;
    }
    for (const std::string_view name : names) {
      if (s_.next().text == name) {
        return true;
      }
    }
    return names.size() == 0 && s_.next().text.starts_with("end");
  }

  void parse_next(Block& block) {
    const int line = s_.current().line;
    if (s_.is(TokenType::kData)) {
      Statement text = make(StatementKind::kText, line);
      text.text = s_.take().text;
      block.push_back(std::move(text));
    } else if (s_.is(TokenType::kVariableBegin)) {
      s_.skip();
      Statement print = make(StatementKind::kPrint, line);
      print.value = expressions_.parse_tuple();
      s_.expect(TokenType::kVariableEnd);
      block.push_back(std::move(print));
    } else {
      s_.expect(TokenType::kBlockBegin);
      block.push_back(parse_statement(s_.expect(TokenType::kName)));
    }
  }

  static Statement make(StatementKind kind, int line) {
    Statement statement;
    statement.kind = kind;
    statement.line = line;
    return statement;
  }

  void end_tag(std::string_view name) {
    s_.expect(TokenType::kBlockBegin);
    s_.expect_name(name);
    s_.expect(TokenType::kBlockEnd);
  }

  Statement parse_statement(const Token& tag) {
    if (tag.text == "if") {
      return parse_if(tag.line);
    }
    if (tag.text == "for") {
      return parse_for(tag.line);
    }
    if (tag.text == "set") {
      return parse_set(tag.line);
    }
    if (tag.text == "macro") {
      return parse_macro(tag.line);
    }
    if (tag.text == "call") {
      return parse_call(tag.line);
    }
    if (tag.text == "filter") {
      Statement filter = make(StatementKind::kFilter, tag.line);
      filter.value = expressions_.parse_filters(nullptr, true);
      finish_block(filter, "endfilter");
      return filter;
    }
    if (tag.text == "with") {
      return parse_with(tag.line);
    }
    if (tag.text == "generation") {
      Statement generation = make(StatementKind::kGeneration, tag.line);
      finish_function(generation, "endgeneration");
      return generation;
    }
    return parse_simple(tag);
  }

  Statement parse_simple(const Token& tag) {
    Statement statement = make(StatementKind::kBreak, tag.line);
    if (tag.text == "continue") {
      statement.kind = StatementKind::kContinue;
    } else if (tag.text == "print") {
      statement.kind = StatementKind::kPrint;
      statement.value = expressions_.parse_tuple();
    } else if (tag.text == "do") {
      statement.kind = StatementKind::kDo;
      statement.value = expressions_.parse_tuple();
    } else if (tag.text != "break") {
      throw TemplateError(fmt::format("tag '{}' is not supported", tag.text), tag.line);
    }
    if (tag.text == "break" || tag.text == "continue") {
      if (loops_ == 0) {
        throw TemplateError(fmt::format("'{}' outside of a loop", tag.text), tag.line);
      }
    }
    s_.expect(TokenType::kBlockEnd);
    return statement;
  }

  void finish_block(Statement& statement, std::string_view end) {
    s_.expect(TokenType::kBlockEnd);
    statement.body = parse_body({end});
    end_tag(end);
  }

  // A block that runs as a function of its own, which break and continue do not leave.
  void finish_function(Statement& statement, std::string_view end) {
    const int loops = std::exchange(loops_, 0);
    finish_block(statement, end);
    loops_ = loops;
  }

  Statement parse_if(int line) {
    Statement node = make(StatementKind::kIf, line);
    while (true) {
      Branch branch;
      branch.condition = expressions_.parse_tuple(false);
      s_.expect(TokenType::kBlockEnd);
      branch.body = parse_body({"elif", "else", "endif"});
      node.branches.push_back(std::move(branch));
      s_.skip();
      const std::string tag = s_.take().text;
      if (tag == "elif") {
        continue;
      }
      s_.expect(TokenType::kBlockEnd);
      if (tag == "else") {
        node.branches.push_back({nullptr, parse_body({"endif"})});
        end_tag("endif");
      }
      return node;
    }
  }

  Statement parse_for(int line) {
    Statement node = make(StatementKind::kFor, line);
    node.target = targets_.parse(false);
    s_.expect_name("in");
    node.value = expressions_.parse_tuple(false);
    if (s_.skip_name("if")) {
      node.condition = expressions_.parse_expression();
    }
    node.recursive = s_.skip_name("recursive");
    s_.expect(TokenType::kBlockEnd);
    ++loops_;
    const std::size_t begin = s_.position();
    node.body = parse_body({"else", "endfor"});
    node.uses_loop = s_.mentions("loop", begin);
    --loops_;
    s_.skip();
    const bool has_else = s_.take().text == "else";
    s_.expect(TokenType::kBlockEnd);
    if (has_else) {
      node.otherwise = parse_body({"endfor"});
      end_tag("endfor");
    }
    return node;
  }

  Statement parse_set(int line) {
    Statement node = make(StatementKind::kSet, line);
    node.target = targets_.parse(true);
    if (s_.skip_operator("=")) {
      node.value = expressions_.parse_tuple();
      s_.expect(TokenType::kBlockEnd);
      return node;
    }
    node.kind = StatementKind::kSetBlock;
    node.value = expressions_.parse_filters(nullptr, false);
    finish_block(node, "endset");
    return node;
  }

  void parse_parameters(Statement& node) {
    s_.expect_operator("(");
    while (!s_.is_operator(")")) {
      Parameter parameter{s_.expect(TokenType::kName).text, nullptr};
      if (s_.skip_operator("=")) {
        parameter.otherwise = expressions_.parse_expression();
      } else if (!node.parameters.empty() && node.parameters.back().otherwise != nullptr) {
        throw TemplateError("a parameter without a default follows one with a default", node.line);
      }
      node.parameters.push_back(std::move(parameter));
      if (!s_.is_operator(")")) {
        s_.expect_operator(",");
      }
    }
    s_.skip();
  }

  void parse_macro_body(Statement& node, std::string_view end) {
    const std::size_t begin = s_.position();
    finish_function(node, end);
    node.takes_varargs = s_.mentions("varargs", begin);
    node.takes_kwargs = s_.mentions("kwargs", begin);
  }

  Statement parse_macro(int line) {
    Statement node = make(StatementKind::kMacro, line);
    node.text = s_.expect(TokenType::kName).text;
    parse_parameters(node);
    parse_macro_body(node, "endmacro");
    return node;
  }

  Statement parse_call(int line) {
    Statement node = make(StatementKind::kCall, line);
    if (s_.is_operator("(")) {
      parse_parameters(node);
    }
    node.value = expressions_.parse_expression();
    if (node.value->kind != ExpressionKind::kCall) {
      throw TemplateError("expected a call in the call tag", line);
    }
    parse_macro_body(node, "endcall");
    return node;
  }

  Statement parse_with(int line) {
    Statement node = make(StatementKind::kWith, line);
    while (!s_.is(TokenType::kBlockEnd)) {
      const std::string name = s_.expect(TokenType::kName).text;
      s_.expect_operator("=");
      node.parameters.push_back({name, expressions_.parse_expression()});
      if (!s_.is(TokenType::kBlockEnd)) {
        s_.expect_operator(",");
      }
    }
    finish_block(node, "endwith");
    return node;
  }

  TokenStream s_;
  ExpressionParser expressions_;
  TargetParser targets_;
  int depth_ = 0;
  int loops_ = 0;
};

}  // namespace

Block parse(std::string_view source) {
  const std::vector<Token> tokens = tokenize(source);
  return Parser(tokens).parse_template();
}

}  // namespace tandem::text::jinja
