#include "rollout/block_manager.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::rollout {
namespace {

const BlockManagerConfig& checked(const BlockManagerConfig& config) {
  TANDEM_CHECK(config.num_blocks >= 2,
               "num_blocks is {}: one is the null block, so at least 2 are needed",
               config.num_blocks);
  TANDEM_CHECK(config.block_size >= 1, "block_size is {}", config.block_size);
  return config;
}

}  // namespace

BlockManager::BlockManager(const BlockManagerConfig& config)
    : config_(checked(config)),
      free_(config.num_blocks),
      cache_({.num_blocks = config.num_blocks,
              .block_size = config.block_size,
              .hash_bits = config.hash_bits}),
      owners_(static_cast<std::size_t>(config.num_blocks)) {
  for (BlockId block = kNullBlock + 1; block < config.num_blocks; ++block) {
    free_.push_back(block);
  }
}

PrefixMatch BlockManager::match(const CacheRoot& root, std::span<const TokenId> ids) {
  PrefixMatch match = no_match(root);
  const auto size = static_cast<std::size_t>(config_.block_size);
  for (std::size_t begin = 0; begin + size < ids.size(); begin += size) {
    const auto block = cache_.find(match.cursor, ids.subspan(begin, size));
    if (!block) {
      break;
    }
    match.blocks.push_back(*block);
    match.num_idle += owners_[*block] == 0 ? 1 : 0;
  }
  return match;
}

std::optional<BlockTable> BlockManager::allocate(const PrefixMatch& match,
                                                 std::int64_t num_tokens) {
  const auto num_hits = static_cast<std::int64_t>(match.blocks.size());
  const std::int64_t num_fresh = std::max<std::int64_t>(0, blocks_for(num_tokens) - num_hits);
  if (num_fresh + match.num_idle > num_free()) {
    return std::nullopt;
  }
  BlockTable table(*this);
  table.blocks_.reserve(static_cast<std::size_t>(num_hits + num_fresh));
  // The hits leave the free list first, so that none of them is taken as a fresh block.
  for (const BlockId block : match.blocks) {
    take(block);
    table.blocks_.push_back(block);
  }
  for (std::int64_t i = 0; i < num_fresh; ++i) {
    table.blocks_.push_back(take_fresh());
  }
  table.cursor_ = match.cursor;
  table.num_cached_ = num_hits;
  return table;
}

bool BlockManager::extend(BlockTable& table, std::int64_t num_tokens) {
  const auto num_blocks = static_cast<std::int64_t>(table.blocks_.size());
  const std::int64_t num_fresh = blocks_for(num_tokens) - num_blocks;
  if (num_fresh > num_free()) {
    return false;
  }
  for (std::int64_t i = 0; i < num_fresh; ++i) {
    table.blocks_.push_back(take_fresh());
  }
  return true;
}

void BlockManager::shrink(BlockTable& table, std::int64_t num_tokens) noexcept {
  const auto num_kept = static_cast<std::size_t>(blocks_for(num_tokens));
  while (table.blocks_.size() > num_kept) {
    give_back(table.blocks_.back());
    table.blocks_.pop_back();
  }
}

std::optional<BlockTable> BlockManager::fork(const BlockTable& table, std::int64_t num_tokens) {
  const std::int64_t num_shared = num_tokens / config_.block_size;
  const bool has_partial = num_tokens % config_.block_size != 0;
  TANDEM_CHECK(blocks_for(num_tokens) <= static_cast<std::int64_t>(table.blocks_.size()),
               "fork of {} tokens from a table of {} blocks",
               num_tokens,
               table.blocks_.size());
  TANDEM_CHECK(table.num_cached_ == num_shared && !table.pending_copy_,
               "fork at {} tokens of a table with {} committed blocks",
               num_tokens,
               table.num_cached_);
  if (has_partial && num_free() == 0) {
    return std::nullopt;
  }
  BlockTable child(*this);
  for (std::int64_t i = 0; i < num_shared; ++i) {
    take(table.blocks_[i]);
    child.blocks_.push_back(table.blocks_[i]);
  }
  child.cursor_ = table.cursor_;
  child.num_cached_ = num_shared;
  if (has_partial) {
    const BlockId source = table.blocks_[num_shared];
    take(source);
    child.blocks_.push_back(take_fresh());
    child.pending_copy_ = {source, child.blocks_.back()};
  }
  return child;
}

void BlockManager::copied(BlockTable& table) noexcept {
  if (table.pending_copy_) {
    give_back(table.pending_copy_->from);
    table.pending_copy_.reset();
  }
}

void BlockManager::commit(BlockTable& table,
                          std::span<const TokenId> ids,
                          std::int64_t num_computed) {
  const std::int64_t num_full = num_computed / config_.block_size;
  for (std::int64_t i = table.num_cached_; i < num_full; ++i) {
    const auto tokens =
        ids.subspan(static_cast<std::size_t>(i * config_.block_size), config_.block_size);
    cache_.insert(table.blocks_[i], table.cursor_, tokens);
    table.num_cached_ = i + 1;
  }
}

bool BlockManager::reset_cache() noexcept {
  if (num_free() != num_usable()) {
    return false;
  }
  cache_.clear();
  return true;
}

std::int64_t BlockManager::blocks_for(std::int64_t num_tokens) const {
  return (num_tokens + config_.block_size - 1) / config_.block_size;
}

void BlockManager::take(BlockId block) noexcept {
  if (owners_[block]++ == 0) {
    free_.remove(block);
  }
}

BlockId BlockManager::take_fresh() {
  const auto block = free_.pop_front();
  TANDEM_CHECK(block.has_value(), "no free block, although there was room a moment ago");
  cache_.erase(*block);
  owners_[*block] = 1;
  return *block;
}

void BlockManager::give_back(BlockId block) noexcept {
  if (--owners_[block] > 0) {
    return;
  }
  if (cache_.is_cached(block)) {
    free_.push_back(block);
  } else {
    free_.push_front(block);
  }
}

std::vector<std::int32_t> BlockManager::occurrences(
    std::span<const BlockTable* const> tables) const {
  std::vector<std::int32_t> counts(owners_.size());
  for (const BlockTable* table : tables) {
    for (const BlockId block : table->blocks_) {
      ++counts[block];
    }
    if (table->pending_copy_) {
      ++counts[table->pending_copy_->from];
    }
  }
  return counts;
}

void BlockManager::check_block(BlockId block, std::int32_t num_occurrences) const {
  TANDEM_CHECK(owners_[block] == num_occurrences,
               "block {} has {} owners and is in {} tables",
               block,
               owners_[block],
               num_occurrences);
  TANDEM_CHECK(free_.contains(block) == (owners_[block] == 0 && block != kNullBlock),
               "block {} has {} owners and its place in the free list is wrong",
               block,
               owners_[block]);
}

void BlockManager::check_invariants(std::span<const BlockTable* const> tables) const {
  const std::vector<std::int32_t> counts = occurrences(tables);
  for (BlockId block = kNullBlock; block < config_.num_blocks; ++block) {
    check_block(block, counts[block]);
  }
  TANDEM_CHECK(owners_[kNullBlock] == 0 && !cache_.is_cached(kNullBlock),
               "the null block is in use");
  const auto num_owned = std::ranges::count_if(owners_, [](std::int32_t n) { return n > 0; });
  TANDEM_CHECK(num_free() + num_owned == num_usable(),
               "{} free and {} used blocks of {}",
               num_free(),
               num_owned,
               num_usable());
  cache_.check_invariants();
}

}  // namespace tandem::rollout
