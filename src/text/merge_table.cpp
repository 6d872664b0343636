#include "text/merge_table.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <queue>

namespace tandem::text {
namespace {

constexpr std::size_t kShortWord = 24;  // symbols; below it, scanning beats a heap

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

}  // namespace tandem::text
