// Ids of words that were encoded before. Natural text repeats its words.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/bpe.h"

namespace tandem::text {

/// Thread safe: shards by the word's hash, each with a mutex, so that threads rarely meet.
class BpeModel::Cache {
 public:
  static constexpr std::size_t kMaxWord = 64;  // bytes; longer words hardly repeat

  /// Appends the ids of the word when they are known.
  [[nodiscard]] bool find(std::string_view word, std::vector<TokenId>& out) {
    Shard& shard = shard_of(word);
    const std::scoped_lock lock(shard.mutex);
    const auto found = shard.ids.find(word);
    if (found == shard.ids.end()) {
      return false;
    }
    out.insert(out.end(), found->second.begin(), found->second.end());
    return true;
  }

  /// A full shard takes nothing more: the frequent words came first.
  void insert(std::string_view word, std::vector<TokenId> ids) {
    Shard& shard = shard_of(word);
    const std::scoped_lock lock(shard.mutex);
    if (shard.ids.size() < kMaxPerShard) {
      shard.ids.emplace(word, std::move(ids));
    }
  }

 private:
  static constexpr std::size_t kShards = 64;
  static constexpr std::size_t kMaxPerShard = 1024;

  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  struct Shard {
    std::mutex mutex;  // guards ids
    std::unordered_map<std::string, std::vector<TokenId>, Hash, std::equal_to<>> ids;
  };

  Shard& shard_of(std::string_view word) {
    // Other bits than the ones that the map buckets by.
    return shards_[(std::hash<std::string_view>{}(word) >> 48U) % kShards];
  }

  std::array<Shard, kShards> shards_;
};

}  // namespace tandem::text
