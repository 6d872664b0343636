#include "rollout/free_list.h"

namespace tandem::rollout {

FreeList::FreeList(std::int32_t num_blocks)
    : end_(num_blocks),
      next_(static_cast<std::size_t>(num_blocks) + 1, kOutside),
      previous_(static_cast<std::size_t>(num_blocks) + 1, kOutside) {
  next_[end_] = end_;
  previous_[end_] = end_;
}

std::optional<BlockId> FreeList::pop_front() noexcept {
  if (size_ == 0) {
    return std::nullopt;
  }
  const BlockId block = next_[end_];
  remove(block);
  return block;
}

void FreeList::remove(BlockId block) noexcept {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
  next_[block] = kOutside;
  previous_[block] = kOutside;
  --size_;
}

void FreeList::insert_before(BlockId place, BlockId block) noexcept {
  const BlockId before = previous_[place];
  next_[before] = block;
  previous_[block] = before;
  next_[block] = place;
  previous_[place] = block;
  ++size_;
}

std::vector<BlockId> FreeList::to_vector() const {
  std::vector<BlockId> blocks;
  for (BlockId block = next_[end_]; block != end_; block = next_[block]) {
    blocks.push_back(block);
  }
  return blocks;
}

}  // namespace tandem::rollout
