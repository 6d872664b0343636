// What reading data needs to know of a model: its chat template and its tokenizer, as functions.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::data {

struct TextModel {
  /// The chat template's text of a conversation. Empty where the model has no template.
  std::function<std::string(const std::vector<Message>& messages, bool add_generation_prompt)>
      render;

  /// Ids of a text, with the tokenizer's own special tokens around it or without.
  std::function<std::vector<TokenId>(std::string_view text, bool add_special_tokens)> encode;

  /// All ids that end a completion; the first is put behind completions that the template does not
  /// end itself.
  std::vector<TokenId> stop_ids;
};

}  // namespace tandem::data
