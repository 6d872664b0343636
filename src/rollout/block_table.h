// The KV blocks of one sequence.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rollout/prefix_cache.h"

namespace tandem::rollout {

class BlockManager;

/// Contents of one block that are to be in another before anyone reads or writes that one.
struct BlockCopy {
  BlockId from = 0;
  BlockId to = 0;
  bool operator==(const BlockCopy&) const = default;
};

/// The blocks of one sequence, in token order. Gives them back when destroyed.
///
/// A table must not outlive the manager that made it.
class BlockTable {
 public:
  BlockTable(BlockTable&& other) noexcept;
  BlockTable& operator=(BlockTable&& other) noexcept;
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;
  ~BlockTable();

  [[nodiscard]] std::span<const BlockId> blocks() const { return blocks_; }

  /// Blocks from the front whose content is in the prefix cache, or was when it was written.
  [[nodiscard]] std::int64_t num_cached() const { return num_cached_; }

  /// The copy that a fork still owes; its source is kept until BlockManager::copied().
  [[nodiscard]] const std::optional<BlockCopy>& pending_copy() const { return pending_copy_; }

 private:
  friend class BlockManager;
  explicit BlockTable(BlockManager& manager) : manager_(&manager) {}
  void release() noexcept;

  BlockManager* manager_;  // not owned; null after a move
  std::vector<BlockId> blocks_;
  PrefixCursor cursor_;  // the prefix behind the first num_cached_ blocks
  std::int64_t num_cached_ = 0;
  std::optional<BlockCopy> pending_copy_;
};

}  // namespace tandem::rollout
