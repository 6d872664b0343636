#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

#include "text/bpe_cache.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr std::int64_t kMaxId = 1 << 24;  // an id beyond it is a damaged file, not a vocabulary
constexpr std::size_t kShortWord = 24;    // symbols; below it, scanning beats a heap

std::uint64_t pair_of(TokenId left, TokenId right) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32U) |
         static_cast<std::uint32_t>(right);
}

// Repeatedly merges the best pair, found by a scan.
void merge_short(const MergeTable& merges, std::vector<TokenId>& symbols) {
  std::array<const MergeTable::Merge*, kShortWord> best{};  // of symbols i and i + 1
  for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
    best[i] = merges.find(symbols[i], symbols[i + 1]);
  }
  while (symbols.size() > 1) {
    std::size_t at = symbols.size();
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      if (best[i] != nullptr && (at == symbols.size() || best[i]->rank < best[at]->rank)) {
        at = i;
      }
    }
    if (at == symbols.size()) {
      return;
    }
    symbols[at] = best[at]->id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
    std::copy(best.begin() + at + 1, best.begin() + symbols.size() + 1, best.begin() + at);
    if (at > 0) {
      best[at - 1] = merges.find(symbols[at - 1], symbols[at]);
    }
    best[at] = at + 1 < symbols.size() ? merges.find(symbols[at], symbols[at + 1]) : nullptr;
  }
}

// The same with a heap over a linked list, for words as long as a document.
class LongMerger {
 public:
  LongMerger(const MergeTable& merges, const std::vector<TokenId>& symbols) : merges_(merges) {
    nodes_.reserve(symbols.size());
    for (std::size_t i = 0; i < symbols.size(); ++i) {
      const auto at = static_cast<std::int32_t>(i);
      nodes_.push_back({symbols[i], at - 1, at + 1});
    }
    nodes_.back().next = kNone;
    for (std::size_t i = 0; i + 1 < nodes_.size(); ++i) {
      push(static_cast<std::int32_t>(i));
    }
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate top = queue_.top();
      queue_.pop();
      Node& left = nodes_[top.at];
      if (left.id == kGone || left.next == kNone) {
        continue;
      }
      const Node& right = nodes_[left.next];
      const auto* merge = merges_.find(left.id, right.id);
      if (merge == nullptr || merge->rank != top.rank) {
        continue;  // an earlier merge changed the pair
      }
      join(top.at, merge->id);
    }
  }

  void collect(std::vector<TokenId>& out) const {
    out.clear();
    for (std::int32_t at = 0; at != kNone; at = nodes_[at].next) {
      out.push_back(nodes_[at].id);
    }
  }

 private:
  static constexpr std::int32_t kNone = -1;
  static constexpr TokenId kGone = -1;

  struct Node {
    TokenId id;
    std::int32_t previous;
    std::int32_t next;
  };
  struct Candidate {
    std::int32_t rank;
    std::int32_t at;
    bool operator>(const Candidate& other) const {
      return rank != other.rank ? rank > other.rank : at > other.at;
    }
  };

  void push(std::int32_t at) {
    const Node& node = nodes_[at];
    if (node.next != kNone) {
      if (const auto* merge = merges_.find(node.id, nodes_[node.next].id)) {
        queue_.push({merge->rank, at});
      }
    }
  }

  void join(std::int32_t at, TokenId id) {
    Node& left = nodes_[at];
    Node& right = nodes_[left.next];
    left.id = id;
    right.id = kGone;
    left.next = right.next;
    if (left.next != kNone) {
      nodes_[left.next].previous = at;
    }
    if (left.previous != kNone) {
      push(left.previous);
    }
    push(at);
  }

  const MergeTable& merges_;
  std::vector<Node> nodes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue_;
};

}  // namespace

void Vocabulary::add(const std::string& token, TokenId id) {
  const auto [entry, is_new] = ids_.emplace(token, id);
  if (static_cast<std::size_t>(id) >= tokens_.size()) {
    tokens_.resize(static_cast<std::size_t>(id) + 1);
  }
  tokens_[id] = &entry->first;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token(TokenId id) const {
  return id >= 0 && id < size() ? tokens_[id] : nullptr;
}

MergeTable::MergeTable(std::size_t num_merges)
    : slots_(std::bit_ceil(2 * num_merges + 2)), mask_(slots_.size() - 1) {}

std::size_t MergeTable::slot_of(std::uint64_t pair) const {
  std::size_t at = ((pair * 0x9E3779B97F4A7C15ULL) >> 20U) & mask_;
  while (slots_[at].pair != pair && slots_[at].pair != kFree) {
    at = (at + 1) & mask_;
  }
  return at;
}

void MergeTable::add(TokenId left, TokenId right, Merge merge) {
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  slot = {pair_of(left, right), merge};
}

const MergeTable::Merge* MergeTable::find(TokenId left, TokenId right) const {
  const Slot& slot = slots_[slot_of(pair_of(left, right))];
  return slot.pair == kFree ? nullptr : &slot.merge;
}

void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols) {
  if (symbols.size() < 2) {
    return;
  }
  if (symbols.size() <= kShortWord) {
    merge_short(merges, symbols);
    return;
  }
  LongMerger merger(merges, symbols);
  merger.run();
  merger.collect(symbols);
}

BpeModel::BpeModel(const JsonPlace& config, bool gives_bytes)
    : prefix_(config.string_or("continuing_subword_prefix", "")),
      suffix_(config.string_or("end_of_word_suffix", "")),
      gives_bytes_(gives_bytes),
      fuse_unknown_(config.flag("fuse_unk", false)),
      byte_fallback_(config.flag("byte_fallback", false)),
      ignore_merges_(config.flag("ignore_merges", false)),
      cache_(std::make_unique<Cache>()) {
  if (config.has("dropout") && config.at("dropout").value() != 0.0) {
    config.at("dropout").refuse("random dropout of merges is not supported");
  }
  read_vocabulary(config);
  read_merges(config);
  if (config.has("unk_token")) {
    const JsonPlace unknown = config.at("unk_token");
    unknown_ = vocabulary_.find(unknown.string());
    if (!unknown_.has_value()) {
      unknown.refuse("\"{}\" is not in the vocabulary", unknown.string());
    }
  }
  for (int b = 0; b < 256; ++b) {
    const std::string token = gives_bytes_ ? byte_characters()[b] : fmt::format("<0x{:02X}>", b);
    byte_ids_[b] = vocabulary_.find(token).value_or(-1);
  }
}

BpeModel::~BpeModel() = default;

void BpeModel::read_vocabulary(const JsonPlace& config) {
  const JsonPlace place = config.at("vocab");
  if (!place.value().is_object()) {
    place.refuse("is {}, not an object", place.value().type_name());
  }
  for (const auto& [token, value] : place.value().items()) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
        value.get<std::int64_t>() >= kMaxId) {
      place.refuse("the id of token \"{}\" is no integer from 0 to {}", token, kMaxId - 1);
    }
    vocabulary_.add(token, value.get<TokenId>());
  }
}

void BpeModel::read_merges(const JsonPlace& config) {
  const JsonPlace place = config.at("merges");
  const std::size_t num_merges = place.array_size();
  merges_ = MergeTable(num_merges);
  for (std::size_t i = 0; i < num_merges; ++i) {
    const nlohmann::json& merge = place.value()[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(
          place, i, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      continue;
    }
    const std::string_view both = place.at(i).string();
    const std::size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
      place.at(i).refuse("is not two tokens with a space between them");
    }
    add_merge(place, i, both.substr(0, space), both.substr(space + 1));
  }
}

void BpeModel::add_merge(const JsonPlace& place,
                         std::size_t rank,
                         std::string_view l,
                         std::string_view r) {
  const std::string merged =
      std::string(l) + std::string(r.substr(std::min(prefix_.size(), r.size())));
  const auto left = vocabulary_.find(l);
  const auto right = vocabulary_.find(r);
  const auto id = vocabulary_.find(merged);
  if (!left.has_value() || !right.has_value() || !id.has_value()) {
    place.at(rank).refuse("token \"{}\" is not in the vocabulary",
                          !left.has_value()    ? l
                          : !right.has_value() ? r
                                               : std::string_view(merged));
  }
  merges_.add(*left, *right, {.rank = static_cast<std::int32_t>(rank), .id = *id});
}

void BpeModel::encode(std::string_view word, std::vector<TokenId>& out) const {
  if (word.size() > Cache::kMaxWord) {
    encode_uncached(word, out);
    return;
  }
  if (cache_->find(word, out)) {
    return;
  }
  const std::size_t before = out.size();
  encode_uncached(word, out);
  cache_->insert(word, {out.begin() + static_cast<std::ptrdiff_t>(before), out.end()});
}

void BpeModel::encode_uncached(std::string_view word, std::vector<TokenId>& out) const {
  if (ignore_merges_) {
    const auto id = gives_bytes_ ? vocabulary_.find(to_byte_level(word)) : vocabulary_.find(word);
    if (id.has_value()) {
      out.push_back(*id);
      return;
    }
  }
  std::vector<TokenId> symbols;
  symbols.reserve(word.size());
  if (gives_bytes_ && prefix_.empty() && suffix_.empty()) {
    bytes_to_symbols(word, symbols);
  } else {
    characters_to_symbols(gives_bytes_ ? to_byte_level(word) : std::string(word), symbols);
  }
  merge_symbols(merges_, symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void BpeModel::bytes_to_symbols(std::string_view word, std::vector<TokenId>& out) const {
  for (const char c : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      out.push_back(id);
    } else if (unknown_.has_value() &&
               !(fuse_unknown_ && !out.empty() && out.back() == *unknown_)) {
      out.push_back(*unknown_);  // without an unknown token such a byte is dropped, as everywhere
    }
  }
}

void BpeModel::characters_to_symbols(std::string_view word, std::vector<TokenId>& out) const {
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = decode_utf8(word, at).length;
    const bool last = at + length == word.size();
    const std::string_view character = word.substr(at, length);
    std::optional<TokenId> id;
    if ((at == 0 || prefix_.empty()) && (!last || suffix_.empty())) {
      id = vocabulary_.find(character);
    } else {
      id = vocabulary_.find((at == 0 ? "" : prefix_) + std::string(character) +
                            (last ? suffix_ : ""));
    }
    at += length;
    if (id.has_value()) {
      out.push_back(*id);
    } else if (byte_fallback_ && bytes_of_unknown(character, out)) {
      after_unknown = false;
      continue;
    } else if (unknown_.has_value() && !(fuse_unknown_ && after_unknown)) {
      out.push_back(*unknown_);
    }
    after_unknown = !id.has_value();
  }
}

bool BpeModel::bytes_of_unknown(std::string_view character, std::vector<TokenId>& out) const {
  const auto id = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (!std::ranges::all_of(character, [&](char c) { return id(c) >= 0; })) {
    return false;
  }
  std::ranges::transform(character, std::back_inserter(out), id);
  return true;
}

}  // namespace tandem::text
