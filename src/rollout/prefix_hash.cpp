#include "rollout/prefix_hash.h"

#include <bit>
#include <cstring>
#include <vector>

namespace tandem::rollout {
namespace {

// The state words of SipHash; one round mixes them by additions, rotations and exclusive ors.
struct SipState {
  std::uint64_t a, b, c, d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }

  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }

  std::uint64_t squeeze() {
    for (int i = 0; i < 4; ++i) {
      round();
    }
    return a ^ b ^ c ^ d;
  }
};

// Collects the fields of a hashed record.
class Bytes {
 public:
  void add(const void* data, std::size_t size) {
    const auto* first = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
  }
  void add(std::uint64_t word) { add(&word, sizeof(word)); }
  [[nodiscard]] std::span<const std::byte> view() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

PrefixHash siphash128(const HashKey& key, std::span<const std::byte> bytes) {
  SipState state{key[0] ^ 0x736f6d6570736575,
                 key[1] ^ 0x646f72616e646f6d ^ 0xee,
                 key[0] ^ 0x6c7967656e657261,
                 key[1] ^ 0x7465646279746573};
  std::size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, 8);
    state.absorb(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(bytes.size()) << 56;
  for (int shift = 0; at < bytes.size(); ++at, shift += 8) {
    last |= std::to_integer<std::uint64_t>(bytes[at]) << shift;
  }
  state.absorb(last);
  state.c ^= 0xee;
  PrefixHash hash;
  hash.low = state.squeeze();
  state.b ^= 0xdd;
  hash.high = state.squeeze();
  return hash;
}

PrefixHash hash_root(const HashKey& key, const CacheRoot& root) {
  Bytes record;
  record.add(static_cast<std::uint64_t>(root.weight_version));
  record.add(static_cast<std::uint64_t>(root.adapter));
  record.add(static_cast<std::uint64_t>(root.adapter_version));
  record.add(root.salt.data(), root.salt.size());
  return siphash128(key, record.view());
}

PrefixHash hash_block(const HashKey& key, PrefixHash parent, std::span<const TokenId> tokens) {
  Bytes record;
  record.add(parent.low);
  record.add(parent.high);
  record.add(tokens.data(), tokens.size_bytes());
  return siphash128(key, record.view());
}

}  // namespace tandem::rollout
