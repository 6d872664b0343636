#include "rollout/block_table.h"

#include <utility>

#include "rollout/block_manager.h"

namespace tandem::rollout {

BlockTable::BlockTable(BlockTable&& other) noexcept
    : manager_(std::exchange(other.manager_, nullptr)),
      blocks_(std::exchange(other.blocks_, {})),
      cursor_(other.cursor_),
      num_cached_(std::exchange(other.num_cached_, 0)),
      pending_copy_(std::exchange(other.pending_copy_, std::nullopt)) {}

BlockTable& BlockTable::operator=(BlockTable&& other) noexcept {
  if (this != &other) {
    release();
    manager_ = std::exchange(other.manager_, nullptr);
    blocks_ = std::exchange(other.blocks_, {});
    cursor_ = other.cursor_;
    num_cached_ = std::exchange(other.num_cached_, 0);
    pending_copy_ = std::exchange(other.pending_copy_, std::nullopt);
  }
  return *this;
}

BlockTable::~BlockTable() {
  release();
}

// The tail goes first: a block is evicted before the prefix that it depends on.
void BlockTable::release() noexcept {
  if (manager_ == nullptr) {
    return;
  }
  if (pending_copy_) {
    manager_->give_back(pending_copy_->from);
  }
  for (auto block = blocks_.rbegin(); block != blocks_.rend(); ++block) {
    manager_->give_back(*block);
  }
  manager_ = nullptr;
}

}  // namespace tandem::rollout
