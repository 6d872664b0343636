// The "added_tokens" of a tokenizer.json: found in the text before anything else happens to it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"
#include "text/json_place.h"
#include "text/normalizer.h"

namespace tandem::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool special = false;      // left out of decoded text on request
  bool normalized = false;   // searched in the normalized text rather than in the raw one
  bool single_word = false;  // only where no word character stands beside it
  bool left_strip = false;   // takes the white space before it
  bool right_strip = false;  // takes the white space after it
};

/// A stretch of text: an added token, or (id -1) text between such tokens.
struct Section {
  std::string_view text;
  TokenId id = -1;
};

/// Immutable; leftmost-longest search over a trie.
class AddedTokens {
 public:
  AddedTokens() = default;
  AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  /// Cuts raw text at the tokens that are searched in raw text; `normalized` chooses the others.
  /// Without `allow_special`, special tokens are text like any other.
  [[nodiscard]] std::vector<Section> split(std::string_view text,
                                           bool normalized,
                                           bool allow_special) const;

  [[nodiscard]] const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// The token with this id or this content, or null.
  [[nodiscard]] const AddedToken* find(TokenId id) const;
  [[nodiscard]] const AddedToken* find(const std::string& content) const;

 private:
  struct Node {
    std::map<char, std::int32_t> next;
    std::int32_t token = -1;  // index into tokens_
  };
  struct Trie {
    std::vector<Node> nodes = std::vector<Node>(1);
    std::vector<std::uint8_t> starts = std::vector<std::uint8_t>(256, 0);
    void add(std::string_view content, std::int32_t token);
  };
  struct Match {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::int32_t token = -1;
  };

  static Match search(const Trie& trie, std::string_view text, std::size_t from);
  static bool stands_alone(std::string_view text, const Match& match);

  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;  // indices into tokens_
  std::unordered_map<std::string, std::size_t> by_content_;
  Trie raw_;
  Trie normalized_;
};

/// Reads the "added_tokens" list.
std::vector<AddedToken> read_added_tokens(const JsonPlace& list);

}  // namespace tandem::text
