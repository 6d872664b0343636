// Byte-pair encoding: the model of a tokenizer.json, words to token ids.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/json_place.h"
#include "text/merge_table.h"

namespace tandem::text {

/// Tokens by their text. Lookups take views.
class Vocabulary {
 public:
  Vocabulary() = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;

  void add(const std::string& token, TokenId id);
  [[nodiscard]] std::optional<TokenId> find(std::string_view token) const;

  /// The token of an id, or nothing for an id that has none.
  [[nodiscard]] const std::string* token(TokenId id) const;

  /// One more than the highest id.
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, whose nodes do not move
};

/// Immutable apart from its cache; safe to use from many threads.
class BpeModel {
 public:
  /// `gives_bytes`: words come as raw bytes (see PreTokenizer::gives_bytes).
  BpeModel(const JsonPlace& config, bool gives_bytes);
  BpeModel(const BpeModel&) = delete;
  BpeModel& operator=(const BpeModel&) = delete;
  ~BpeModel();

  /// Appends the ids of one word.
  void encode(std::string_view word, std::vector<TokenId>& out) const;

  [[nodiscard]] const Vocabulary& vocabulary() const { return vocabulary_; }

 private:
  class Cache;

  void read_vocabulary(const JsonPlace& config);
  void read_merges(const JsonPlace& config);
  void add_merge(const JsonPlace& place, std::size_t rank, std::string_view l, std::string_view r);
  void encode_uncached(std::string_view word, std::vector<TokenId>& out) const;
  void bytes_to_symbols(std::string_view word, std::vector<TokenId>& out) const;
  void characters_to_symbols(std::string_view word, std::vector<TokenId>& out) const;
  bool bytes_of_unknown(std::string_view character, std::vector<TokenId>& out) const;

  Vocabulary vocabulary_;
  MergeTable merges_;
  std::string prefix_;  // of tokens that continue a word
  std::string suffix_;  // of tokens that end one
  std::optional<TokenId> unknown_;
  bool gives_bytes_ = false;
  bool fuse_unknown_ = false;
  bool byte_fallback_ = false;
  bool ignore_merges_ = false;
  std::array<TokenId, 256> byte_ids_{};  // of byte characters or <0xNN> tokens; -1: none
  std::unique_ptr<Cache> cache_;
};

}  // namespace tandem::text
