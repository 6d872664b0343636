// The tokenizer inside a GGUF file, turned into the files of a Hugging Face folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::text {

/// The `tokenizer.*` metadata of a GGUF file, as read.
struct GgufVocabulary {
  std::string name;                       // the file's, for errors
  std::string model;                      // tokenizer.ggml.model: "gpt2" or "llama"
  std::string pre;                        // tokenizer.ggml.pre, for "gpt2"
  std::vector<std::string> tokens;        // by id
  std::vector<std::string> merges;        // "a b", for "gpt2"
  std::vector<float> scores;              // of each token, for "llama"
  std::vector<std::int32_t> token_types;  // of each token; may be empty
  std::optional<std::int32_t> bos_id;
  std::optional<std::int32_t> eos_id;
  std::optional<std::int32_t> pad_id;
  std::optional<std::int32_t> unknown_id;
  std::optional<bool> add_bos;           // absent: yes for "llama", no for "gpt2"
  std::optional<bool> add_space_prefix;  // absent: yes; read for "llama"
  std::optional<std::string> chat_template;
};

/// tokenizer.json, tokenizer_config.json, special_tokens_map.json and, where there is a template,
/// chat_template.jinja. Throws UserError for a model or pre-tokenizer that is not supported.
std::map<std::string, std::string> tokenizer_files_of(const GgufVocabulary& vocabulary);

}  // namespace tandem::text
