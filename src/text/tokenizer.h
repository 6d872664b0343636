// Text to token ids and back, from a tokenizer.json or from GGUF metadata.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/gguf_vocabulary.h"

namespace tandem::text {

using TokenId = std::int32_t;

class Decoder;

struct EncodeOptions {
  bool add_special_tokens = true;  // what the post-processor adds: usually the first token
  bool allow_special = true;       // false: special tokens that the text spells out stay text
};

/// Immutable and cheap to copy; any number of threads may use one.
class Tokenizer {
 public:
  /// From a folder with tokenizer.json (or tokenizer.json.gz) and, where they are there,
  /// tokenizer_config.json, special_tokens_map.json and chat_template.jinja.
  /// Throws UserError naming the file and the place.
  static Tokenizer from_folder(const std::filesystem::path& folder);

  /// From the content of the files; the second may be empty. `name` is for errors.
  static Tokenizer from_json(std::string_view tokenizer_json,
                             std::string_view tokenizer_config_json,
                             const std::string& name);

  static Tokenizer from_gguf(const GgufVocabulary& vocabulary);

  /// Broken UTF-8 in the text counts as U+FFFD.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text,
                                            EncodeOptions options = {}) const;

  /// Valid UTF-8 with U+FFFD for broken bytes. Ids without a token give nothing.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  /// All ids are in [0, size). Not every id needs to have a token.
  [[nodiscard]] std::int64_t size() const;

  [[nodiscard]] std::optional<TokenId> id_of(std::string_view token) const;

  /// The token as the vocabulary spells it, or nothing for an id that has none.
  [[nodiscard]] const std::string* token_of(TokenId id) const;

  [[nodiscard]] bool is_special(TokenId id) const;

  /// From tokenizer_config.json, else special_tokens_map.json.
  [[nodiscard]] std::optional<TokenId> eos_id() const;
  [[nodiscard]] std::optional<TokenId> bos_id() const;
  [[nodiscard]] std::optional<TokenId> pad_id() const;

  /// "bos_token", "eos_token", "pad_token", "unk_token", ... with their text, those that are set.
  [[nodiscard]] const std::map<std::string, std::string>& special_tokens() const;

  /// chat_template.jinja, else tokenizer_config.json's (of several the one named "default").
  [[nodiscard]] std::optional<std::string> chat_template() const;

  /// What an export writes: file name to content. Loads in transformers.
  [[nodiscard]] std::map<std::string, std::string> files() const;

  /// The decoding steps, for Detokenizer. Lives as long as a copy of this tokenizer.
  [[nodiscard]] const Decoder& decoder() const;

 private:
  struct Sources;
  struct Parts;

  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  static Tokenizer build(Sources sources);
  [[nodiscard]] std::optional<TokenId> id_of_special(const std::string& name) const;

  std::shared_ptr<const Parts> parts_;
};

}  // namespace tandem::text
