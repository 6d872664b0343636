// The blocks that nobody uses, in the order in which they will be given out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace tandem::rollout {

/// Index of a block of the KV arena.
using BlockId = std::int32_t;

/// A doubly linked list over block numbers: every operation takes constant time and no memory.
class FreeList {
 public:
  /// An empty list that can hold the blocks [0, num_blocks).
  explicit FreeList(std::int32_t num_blocks);

  /// `block` must not be in the list.
  void push_front(BlockId block) noexcept { insert_before(next_[end_], block); }
  void push_back(BlockId block) noexcept { insert_before(end_, block); }

  /// Takes the first block, or nothing when the list is empty.
  [[nodiscard]] std::optional<BlockId> pop_front() noexcept;

  /// Takes `block`, which must be in the list, from wherever it stands.
  void remove(BlockId block) noexcept;

  [[nodiscard]] bool contains(BlockId block) const { return next_[block] != kOutside; }
  [[nodiscard]] std::int64_t size() const { return size_; }

  /// All blocks from front to back; for tests and checks.
  [[nodiscard]] std::vector<BlockId> to_vector() const;

 private:
  static constexpr BlockId kOutside = -1;
  void insert_before(BlockId place, BlockId block) noexcept;

  BlockId end_;  // the entry behind the last block closes the ring
  std::vector<BlockId> next_;
  std::vector<BlockId> previous_;
  std::int64_t size_ = 0;
};

}  // namespace tandem::rollout
