// Who owns which KV-cache block: a fixed pool, shared prefixes, no tensor memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "rollout/block_table.h"

namespace tandem::rollout {

/// Never given out. A row that belongs to nobody may be written to it.
inline constexpr BlockId kNullBlock = 0;

struct BlockManagerConfig {
  std::int32_t num_blocks = 0;   // blocks of the arena, the null block included; at least 2
  std::int32_t block_size = 16;  // tokens per block; at least 1
  std::int32_t hash_bits = 128;  // see PrefixCacheConfig
};

/// Cached blocks that a sequence can start with.
struct PrefixMatch {
  std::vector<BlockId> blocks;
  PrefixCursor cursor;        // behind the last of them
  std::int64_t num_idle = 0;  // how many of them nobody uses: taking them shortens the free list
};

/// Hands out blocks of a fixed pool and counts their owners.
///
/// Running out is an ordinary outcome, told by the return value, and changes nothing. A free block
/// keeps its cached content until it is given out again, the longest unused first. Not thread safe;
/// the engine thread owns it.
class BlockManager {
 public:
  explicit BlockManager(const BlockManagerConfig& config);
  BlockManager(const BlockManager&) = delete;
  BlockManager& operator=(const BlockManager&) = delete;

  /// The longest cached prefix of `ids` in full blocks, without its last token: the row of the last
  /// token is always computed, because its logits are wanted.
  [[nodiscard]] PrefixMatch match(const CacheRoot& root, std::span<const TokenId> ids);

  /// An empty match, for a sequence that must not read the cache but fills it.
  [[nodiscard]] PrefixMatch no_match(const CacheRoot& root) { return {{}, cache_.root(root), 0}; }

  /// A table for `num_tokens` tokens that starts with the blocks of `match`, which is of this
  /// moment. Nothing when the pool is too short.
  [[nodiscard]] std::optional<BlockTable> allocate(const PrefixMatch& match,
                                                   std::int64_t num_tokens);

  /// Makes room up to `num_tokens` in all. False, with `table` unchanged, when the pool is short.
  [[nodiscard]] bool extend(BlockTable& table, std::int64_t num_tokens);

  /// Gives back the blocks of `table` behind those of the first `num_tokens` tokens; none of them
  /// is committed.
  void shrink(BlockTable& table, std::int64_t num_tokens) noexcept;

  /// A second sequence with the first `num_tokens` tokens of `table`, all of them computed.
  ///
  /// Full blocks are shared. A partly filled last block gets a block of its own, which
  /// pending_copy() of the new table says how to fill. Nothing when the pool is too short.
  [[nodiscard]] std::optional<BlockTable> fork(const BlockTable& table, std::int64_t num_tokens);

  /// The pending copy of `table` was done: its source may go.
  void copied(BlockTable& table) noexcept;

  /// Makes the blocks of `table` that the first `num_computed` of `ids` fill findable. Call it
  /// after the forward that wrote them, never before.
  void commit(BlockTable& table, std::span<const TokenId> ids, std::int64_t num_computed);

  /// The weights changed: whatever is cached is of an older version, whose roots nobody asks for
  /// any more. The blocks lose their content when they are given out.
  void forget_roots() noexcept { cache_.forget_roots(); }

  /// Empties the cache. False, with nothing changed, while any block is in use.
  [[nodiscard]] bool reset_cache() noexcept;

  [[nodiscard]] std::int64_t blocks_for(std::int64_t num_tokens) const;
  [[nodiscard]] std::int32_t block_size() const { return config_.block_size; }
  [[nodiscard]] std::int64_t num_usable() const { return config_.num_blocks - 1; }
  [[nodiscard]] std::int64_t num_free() const { return free_.size(); }
  [[nodiscard]] std::int32_t num_owners(BlockId block) const { return owners_[block]; }
  [[nodiscard]] const FreeList& free_list() const { return free_; }
  [[nodiscard]] const PrefixCache& cache() const { return cache_; }

  /// Throws tandem::Error unless `tables` are all tables there are and the books balance:
  /// (A) a block occurs in them as often as it has owners, (B) it is free exactly when it has none,
  /// (C) the cache agrees with itself, (D) without tables all blocks are free.
  void check_invariants(std::span<const BlockTable* const> tables) const;

 private:
  friend class BlockTable;
  void take(BlockId block) noexcept;
  BlockId take_fresh();
  void give_back(BlockId block) noexcept;
  [[nodiscard]] std::vector<std::int32_t> occurrences(
      std::span<const BlockTable* const> tables) const;
  void check_block(BlockId block, std::int32_t num_occurrences) const;

  BlockManagerConfig config_;
  FreeList free_;
  PrefixCache cache_;
  std::vector<std::int32_t> owners_;  // per block
};

}  // namespace tandem::rollout
