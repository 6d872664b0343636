#include "rollout/prefix_cache.h"

#include <algorithm>

#include "base/error.h"

namespace tandem::rollout {

PrefixCache::PrefixCache(const PrefixCacheConfig& config)
    : config_(config),
      entries_(static_cast<std::size_t>(config.num_blocks)),
      tokens_(static_cast<std::size_t>(config.num_blocks) * config.block_size) {
  TANDEM_CHECK(config.hash_bits >= 1 && config.hash_bits <= 128,
               "hash_bits is {}, not in [1, 128]",
               config.hash_bits);
}

PrefixCursor PrefixCache::root(const CacheRoot& root) {
  const auto [place, added] = roots_.try_emplace(root);
  if (added) {
    place->second = {shortened(hash_root(config_.key, root)), ++last_content_};
  }
  return place->second;
}

std::optional<BlockId> PrefixCache::find(PrefixCursor& at, std::span<const TokenId> tokens) const {
  const PrefixHash hash = shortened(hash_block(config_.key, at.hash, tokens));
  const auto block = find_exact(hash, at.content, tokens);
  if (block) {
    at = {hash, entries_[*block].content};
  }
  return block;
}

void PrefixCache::insert(BlockId block, PrefixCursor& at, std::span<const TokenId> tokens) {
  TANDEM_CHECK(!is_cached(block), "block {} is cached already", block);
  const PrefixHash hash = shortened(hash_block(config_.key, at.hash, tokens));
  const auto twin = find_exact(hash, at.content, tokens);
  Entry& entry = entries_[block];
  entry = {hash, twin ? entries_[*twin].content : ++last_content_, at.content};
  std::ranges::copy(tokens,
                    tokens_.begin() + static_cast<std::ptrdiff_t>(block) * config_.block_size);
  blocks_.emplace(hash, block);
  at = {hash, entry.content};
}

void PrefixCache::erase(BlockId block) noexcept {
  if (!is_cached(block)) {
    return;
  }
  const auto [first, last] = blocks_.equal_range(entries_[block].hash);
  const auto place =
      std::find_if(first, last, [block](const auto& item) { return item.second == block; });
  if (place != last) {
    blocks_.erase(place);
  }
  entries_[block] = {};
}

void PrefixCache::clear() noexcept {
  std::ranges::fill(entries_, Entry{});
  blocks_.clear();
  roots_.clear();
}

void PrefixCache::check_invariants() const {
  const auto wrong = std::ranges::find_if(blocks_, [this](const auto& item) {
    return !is_cached(item.second) || entries_[item.second].hash != item.first;
  });
  TANDEM_CHECK(wrong == blocks_.end(),
               "prefix cache: the map names block {} under a hash that it does not have",
               wrong->second);
  const auto num_cached =
      std::ranges::count_if(entries_, [](const Entry& entry) { return entry.content != 0; });
  TANDEM_CHECK(static_cast<std::size_t>(num_cached) == blocks_.size(),
               "prefix cache: {} blocks have a hash, the map has {}",
               num_cached,
               blocks_.size());
}

PrefixHash PrefixCache::shortened(PrefixHash hash) const {
  const auto mask = [](std::int32_t bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
  };
  return {hash.low & mask(config_.hash_bits),
          hash.high & mask(std::max(0, config_.hash_bits - 64))};
}

std::span<const TokenId> PrefixCache::tokens_of(BlockId block) const {
  return std::span(tokens_).subspan(static_cast<std::size_t>(block) * config_.block_size,
                                    config_.block_size);
}

std::optional<BlockId> PrefixCache::find_exact(PrefixHash hash,
                                               std::uint64_t parent,
                                               std::span<const TokenId> tokens) const {
  const auto [first, last] = blocks_.equal_range(hash);
  const auto place = std::find_if(first, last, [&](const auto& item) {
    return entries_[item.second].parent == parent &&
           std::ranges::equal(tokens_of(item.second), tokens);
  });
  return place == last ? std::nullopt : std::optional(place->second);
}

}  // namespace tandem::rollout
