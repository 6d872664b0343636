// A chat template and a tokenizer that are easy to follow: one id a character, "<role>...|".
#pragma once

#include "data/text_model.h"

namespace tandem::data::test {

constexpr TokenId kStop = '|';
constexpr TokenId kBegin = 1;  // the tokenizer's own special token

inline TextModel fake_text_model(bool with_template = true) {
  TextModel model;
  if (with_template) {
    model.render = [](const std::vector<Message>& messages, bool add_generation_prompt) {
      std::string text;
      for (const Message& message : messages) {
        text += "<" + message.role + ">" + message.content + "|\n";
      }
      return text + (add_generation_prompt ? "<assistant>" : "");
    };
  }
  model.encode = [](std::string_view text, bool add_special_tokens) {
    std::vector<TokenId> ids;
    if (add_special_tokens) {
      ids.push_back(kBegin);
    }
    for (const char c : text) {
      ids.push_back(static_cast<unsigned char>(c));
    }
    return ids;
  };
  model.stop_ids = {kStop};
  return model;
}

/// The characters whose mask is 1.
inline std::string learnt(const std::vector<TokenId>& ids, const std::vector<std::uint8_t>& mask) {
  std::string text;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    text += mask[i] != 0 ? std::string(1, static_cast<char>(ids[i])) : "";
  }
  return text;
}

inline std::string text_of(const std::vector<TokenId>& ids) {
  return learnt(ids, std::vector<std::uint8_t>(ids.size(), 1));
}

}  // namespace tandem::data::test
