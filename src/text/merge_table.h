// The merges of byte-pair encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tandem::text {

using TokenId = std::int32_t;

/// Which pairs of adjacent tokens merge, in which order, and into what. Open addressing: the lookup
/// is the inner loop of encoding.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank = 0;  // lower merges first
    TokenId id = 0;         // of the merged token
  };

  explicit MergeTable(std::size_t num_merges = 0);
  void add(TokenId left, TokenId right, Merge merge);
  [[nodiscard]] const Merge* find(TokenId left, TokenId right) const;

 private:
  struct Slot {
    std::uint64_t pair = kFree;
    Merge merge;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};
  [[nodiscard]] std::size_t slot_of(std::uint64_t pair) const;

  std::vector<Slot> slots_;
  std::size_t mask_ = 0;
};

/// Merges by the order of the table: lowest rank first, leftmost of equals. O(n log n).
void merge_symbols(const MergeTable& merges, std::vector<TokenId>& symbols);

}  // namespace tandem::text
