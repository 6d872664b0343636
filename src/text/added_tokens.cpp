#include "text/added_tokens.h"

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr std::int64_t kMaxId = 1 << 24;

std::size_t start_of_last_character(std::string_view text, std::size_t end) {
  do {
    --end;
  } while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U);
  return end;
}

// Where the white space that ends at `end` begins.
std::size_t space_begin(std::string_view text, std::size_t end) {
  while (end > 0) {
    const std::size_t at = start_of_last_character(text, end);
    if (class_of(decode_utf8(text, at).code) != kSpace) {
      break;
    }
    end = at;
  }
  return end;
}

std::size_t space_end(std::string_view text, std::size_t begin) {
  while (begin < text.size()) {
    const Decoded c = decode_utf8(text, begin);
    if (class_of(c.code) != kSpace) {
      break;
    }
    begin += c.length;
  }
  return begin;
}

}  // namespace

void AddedTokens::Trie::add(std::string_view content, std::int32_t token) {
  std::int32_t at = 0;
  for (const char c : content) {
    const auto [entry, is_new] =
        nodes[at].next.try_emplace(c, static_cast<std::int32_t>(nodes.size()));
    at = entry->second;
    if (is_new) {
      nodes.emplace_back();
    }
  }
  if (at != 0) {
    starts[static_cast<unsigned char>(content.front())] = 1;
    nodes[at].token = token;
  }
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normalizer& normalizer)
    : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    by_id_.emplace(token.id, i);
    by_content_.emplace(token.content, i);
    const auto index = static_cast<std::int32_t>(i);
    if (token.normalized) {
      normalized_.add(normalizer.apply(token.content), index);
    } else {
      raw_.add(token.content, index);
    }
  }
}

AddedTokens::Match AddedTokens::search(const Trie& trie, std::string_view text, std::size_t from) {
  for (std::size_t begin = from; begin < text.size(); ++begin) {
    if (trie.starts[static_cast<unsigned char>(text[begin])] == 0) {
      continue;
    }
    Match match{.begin = begin};
    std::int32_t node = 0;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto& next = trie.nodes[node].next;
      const auto found = next.find(text[at]);
      if (found == next.end()) {
        break;
      }
      node = found->second;
      if (trie.nodes[node].token >= 0) {
        match.token = trie.nodes[node].token;
        match.end = at + 1;
      }
    }
    if (match.token >= 0) {
      return match;
    }
  }
  return {};
}

bool AddedTokens::stands_alone(std::string_view text, const Match& match) {
  if (match.begin > 0) {
    const std::size_t before = start_of_last_character(text, match.begin);
    if (is_word(decode_utf8(text, before).code)) {
      return false;
    }
  }
  return match.end == text.size() || !is_word(decode_utf8(text, match.end).code);
}

std::vector<Section> AddedTokens::split(std::string_view text,
                                        bool normalized,
                                        bool allow_special) const {
  const Trie& trie = normalized ? normalized_ : raw_;
  std::vector<Section> sections;
  std::size_t done = 0;
  for (Match match = search(trie, text, 0); match.token >= 0;
       match = search(trie, text, match.end)) {
    const AddedToken& token = tokens_[match.token];
    const bool typed = token.special && !allow_special;
    if (typed || match.begin < done || (token.single_word && !stands_alone(text, match))) {
      continue;
    }
    std::size_t begin = match.begin;
    std::size_t end = match.end;
    if (token.left_strip) {
      begin = std::max(done, space_begin(text, begin));
    }
    if (token.right_strip) {
      end = space_end(text, end);
    }
    if (begin > done) {
      sections.push_back({.text = text.substr(done, begin - done)});
    }
    sections.push_back({.text = text.substr(begin, end - begin), .id = token.id});
    done = end;
  }
  if (done < text.size()) {
    sections.push_back({.text = text.substr(done)});
  }
  return sections;
}

const AddedToken* AddedTokens::find(TokenId id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

const AddedToken* AddedTokens::find(const std::string& content) const {
  const auto found = by_content_.find(content);
  return found == by_content_.end() ? nullptr : &tokens_[found->second];
}

std::vector<AddedToken> read_added_tokens(const JsonPlace& list) {
  std::vector<AddedToken> tokens;
  for (std::size_t i = 0; i < list.array_size(); ++i) {
    const JsonPlace entry = list.at(i);
    AddedToken token;
    const std::int64_t id = entry.at("id").integer();
    if (id < 0 || id >= kMaxId) {
      entry.at("id").refuse("{} is not from 0 to {}", id, kMaxId - 1);
    }
    token.id = static_cast<TokenId>(id);
    token.content = entry.at("content").string();
    token.special = entry.flag("special", false);
    token.normalized = entry.flag("normalized", !token.special);
    token.single_word = entry.flag("single_word", false);
    token.left_strip = entry.flag("lstrip", false);
    token.right_strip = entry.flag("rstrip", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace tandem::text
