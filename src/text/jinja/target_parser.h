// What a for or set tag assigns to.
#pragma once

#include "text/jinja/ast.h"
#include "text/jinja/token_stream.h"

namespace tandem::text::jinja {

/// Refers to the stream.
class TargetParser {
 public:
  explicit TargetParser(TokenStream& stream) : s_(stream) {}

  /// name, name.member where `with_member`, or several of them with commas and parentheses.
  Target parse(bool with_member);

 private:
  Target parse_one(bool with_member);

  TokenStream& s_;
  int nesting_ = 0;
};

}  // namespace tandem::text::jinja
