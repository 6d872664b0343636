// Token ids to text while they are being sampled.
#pragma once

#include <string>

#include "text/decoder.h"
#include "text/tokenizer.h"

namespace tandem::text {

/// Not thread safe; one for each sequence. What `push` and `finish` return is valid UTF-8 each and
/// together the decoded text of all ids: text whose bytes are not complete yet is held back.
class Detokenizer {
 public:
  explicit Detokenizer(Tokenizer tokenizer, bool skip_special_tokens = true);

  /// The text that this id completes; often empty.
  [[nodiscard]] std::string push(TokenId id);

  /// What was held back. Nothing may be pushed afterwards.
  [[nodiscard]] std::string finish();

 private:
  Tokenizer tokenizer_;
  DecodeStream stream_;  // refers to the decoder that tokenizer_ keeps alive
  bool skip_special_tokens_;
};

}  // namespace tandem::text
