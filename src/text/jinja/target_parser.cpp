#include "text/jinja/target_parser.h"

#include <utility>

namespace tandem::text::jinja {
namespace {

constexpr int kMaxNesting = 100;

}  // namespace

Target TargetParser::parse(bool with_member) {
  Target first = parse_one(with_member);
  if (!s_.is_operator(",")) {
    return first;
  }
  Target all;
  all.line = first.line;
  all.parts.push_back(std::move(first));
  while (s_.skip_operator(",") && !s_.is_name("in") && !s_.is_operator("=")) {
    all.parts.push_back(parse_one(with_member));
  }
  return all;
}

Target TargetParser::parse_one(bool with_member) {
  Target target;
  target.line = s_.current().line;
  if (s_.skip_operator("(")) {
    if (++nesting_ > kMaxNesting) {
      throw TemplateError("assignment targets are nested too deeply", target.line);
    }
    target = parse(with_member);
    --nesting_;
    s_.expect_operator(")");
    return target;
  }
  target.name = s_.expect(TokenType::kName).text;
  if (with_member && s_.skip_operator(".")) {
    target.member = s_.expect(TokenType::kName).text;
  }
  return target;
}

}  // namespace tandem::text::jinja
