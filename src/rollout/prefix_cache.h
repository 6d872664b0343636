// Which block holds the KV rows of which prefix.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "rollout/free_list.h"
#include "rollout/prefix_hash.h"

namespace tandem::rollout {

struct PrefixCacheConfig {
  std::int32_t num_blocks = 0;
  std::int32_t block_size = 0;
  HashKey key = {0x74616e64656d2d6b, 0x762d707265666978};
  std::int32_t hash_bits = 128;  // [1, 128]; less than 128 only to provoke collisions in a test
};

/// A place in the tree of prefixes. `content` is exact where the hash may collide: two cursors
/// with one content stand for the same root and the same tokens.
struct PrefixCursor {
  PrefixHash hash;
  std::uint64_t content = 0;
};

/// The tree of cached prefixes. It owns no block: whoever gives a block another content erases it
/// here first.
///
/// A hit is a match of the hash, of the block's tokens and of the exact prefix before it, so that a
/// collision costs a hit and never returns another prompt's rows. Not thread safe.
class PrefixCache {
 public:
  explicit PrefixCache(const PrefixCacheConfig& config);

  /// Where the prefixes of `root` start.
  PrefixCursor root(const CacheRoot& root);

  /// The block that holds `tokens` after the prefix `at`; steps `at` over it. Nothing, with `at`
  /// unchanged, when there is none.
  [[nodiscard]] std::optional<BlockId> find(PrefixCursor& at,
                                            std::span<const TokenId> tokens) const;

  /// Notes that `block`, which is not cached, holds `tokens` after the prefix `at`; steps `at` over
  /// it. Several blocks may hold the same content.
  void insert(BlockId block, PrefixCursor& at, std::span<const TokenId> tokens);

  /// Forgets `block`; nothing happens when it is not cached.
  void erase(BlockId block) noexcept;

  void clear() noexcept;

  /// Forgets where roots start. Their blocks stay, unreachable, until each is erased.
  void forget_roots() noexcept { roots_.clear(); }

  [[nodiscard]] bool is_cached(BlockId block) const { return entries_[block].content != 0; }
  /// The hash of a cached block.
  [[nodiscard]] PrefixHash hash_of(BlockId block) const { return entries_[block].hash; }

  /// Throws tandem::Error unless the map and the blocks' own hashes say the same (invariant C).
  void check_invariants() const;

 private:
  struct Entry {
    PrefixHash hash;
    std::uint64_t content = 0;  // 0: not cached
    std::uint64_t parent = 0;
  };
  struct Hasher {
    std::size_t operator()(const PrefixHash& hash) const noexcept { return hash.low; }
  };

  [[nodiscard]] PrefixHash shortened(PrefixHash hash) const;
  [[nodiscard]] std::span<const TokenId> tokens_of(BlockId block) const;
  [[nodiscard]] std::optional<BlockId> find_exact(PrefixHash hash,
                                                  std::uint64_t parent,
                                                  std::span<const TokenId> tokens) const;

  PrefixCacheConfig config_;
  std::vector<Entry> entries_;   // per block
  std::vector<TokenId> tokens_;  // [num_blocks, block_size]
  std::unordered_multimap<PrefixHash, BlockId, Hasher> blocks_;
  std::map<CacheRoot, PrefixCursor> roots_;
  std::uint64_t last_content_ = 0;  // never reused, so that an old cursor matches nothing new
};

}  // namespace tandem::rollout
