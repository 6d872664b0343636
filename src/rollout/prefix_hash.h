// Names for prefixes of token sequences: a chain of 128-bit keyed hashes, one a block.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>

#include "base/phase.h"
#include "protocol/trajectory.h"

namespace tandem::rollout {

struct PrefixHash {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const PrefixHash&) const = default;
};

using HashKey = std::array<std::uint64_t, 2>;

/// Everything besides the tokens that a KV row depends on. Two roots that differ in any field
/// share no block.
struct CacheRoot {
  WeightVersion weight_version = 0;
  std::int64_t adapter = 0;
  std::int64_t adapter_version = 0;
  std::string salt = {};  // keeps the prompts of one owner to themselves
  bool operator==(const CacheRoot&) const = default;
  bool operator<(const CacheRoot& other) const {
    return std::tie(weight_version, adapter, adapter_version, salt) <
           std::tie(other.weight_version, other.adapter, other.adapter_version, other.salt);
  }
};

/// Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012 (SipHash-2-4 with the
/// 128-bit output of its reference implementation).
PrefixHash siphash128(const HashKey& key, std::span<const std::byte> bytes);

/// The hash that the chain of `root` starts from.
PrefixHash hash_root(const HashKey& key, const CacheRoot& root);

/// The hash of a block of `tokens` that follows the prefix `parent`.
PrefixHash hash_block(const HashKey& key, PrefixHash parent, std::span<const TokenId> tokens);

}  // namespace tandem::rollout
