#include "text/detokenizer.h"

#include <utility>

namespace tandem::text {

Detokenizer::Detokenizer(Tokenizer tokenizer, bool skip_special_tokens)
    : tokenizer_(std::move(tokenizer)),
      stream_(tokenizer_.decoder()),
      skip_special_tokens_(skip_special_tokens) {}

std::string Detokenizer::push(TokenId id) {
  std::string delta;
  const std::string* token = tokenizer_.token_of(id);
  if (token != nullptr && !(skip_special_tokens_ && tokenizer_.is_special(id))) {
    stream_.push(*token, delta);
  }
  return delta;
}

std::string Detokenizer::finish() {
  std::string delta;
  stream_.finish(delta);
  return delta;
}

}  // namespace tandem::text
