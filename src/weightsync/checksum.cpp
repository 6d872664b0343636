#include "weightsync/checksum.h"

#include <cstring>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace tandem::weightsync {
namespace {

// FNV-1a over 8-byte words, the rest byte by byte: fast enough for gigabytes, and any flipped bit
// shows.
std::uint64_t hash_bytes(std::uint64_t hash, const void* data, std::size_t size) {
  constexpr std::uint64_t kPrime = 0x100000001b3;
  const auto* bytes = static_cast<const unsigned char*>(data);
  std::size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes + i, 8);
    hash = (hash ^ word) * kPrime;
    hash ^= hash >> 29;
  }
  for (; i < size; ++i) {
    hash = (hash ^ bytes[i]) * kPrime;
  }
  return hash;
}

}  // namespace

std::uint64_t checksum(const model::WeightStore& weights) {
  constexpr std::uint64_t kOffset = 0xcbf29ce484222325;
  const auto tensors = weights.named_tensors();
  std::vector<std::uint64_t> hashes(tensors.size());
  compute_pool().parallel_for(static_cast<std::int64_t>(tensors.size()), [&](std::int64_t i) {
    const auto& [name, tensor] = tensors[static_cast<std::size_t>(i)];
    std::uint64_t hash = hash_bytes(kOffset, name.data(), name.size());
    hash = hash_bytes(hash, tensor.sizes().data(), tensor.sizes().size() * sizeof(std::int64_t));
    hashes[static_cast<std::size_t>(i)] = hash_bytes(hash, tensor.data_ptr(), tensor.nbytes());
  });
  return hash_bytes(kOffset, hashes.data(), hashes.size() * sizeof(std::uint64_t));
}

}  // namespace tandem::weightsync
