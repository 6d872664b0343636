// Template source to tokens, with the white-space rules of trim_blocks and lstrip_blocks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tandem::text::jinja {

enum class TokenType {
  kData,
  kBlockBegin,
  kBlockEnd,
  kVariableBegin,
  kVariableEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenType type = TokenType::kEnd;
  std::string text;  // data, name, operator, number as written, or string with escapes resolved
  int line = 0;
};

/// Throws TemplateError with the line. The last token is kEnd.
std::vector<Token> tokenize(std::string_view source);

}  // namespace tandem::text::jinja
