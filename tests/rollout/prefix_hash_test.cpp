#include "rollout/prefix_hash.h"

#include <set>
#include <vector>

#include <doctest/doctest.h>

namespace tandem::rollout {
namespace {

// The key and the messages of SipHash's published test vectors: bytes 0, 1, 2, ...
constexpr HashKey kKey = {0x0706050403020100, 0x0f0e0d0c0b0a0908};

PrefixHash hash_of_bytes(std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(i);
  }
  return siphash128(kKey, bytes);
}

TEST_CASE("SipHash-2-4-128 gives the published vectors") {
  CHECK(hash_of_bytes(0) == PrefixHash{0xe6a825ba047f81a3, 0x930255c71472f66d});
  CHECK(hash_of_bytes(1) == PrefixHash{0x44af996bd8c187da, 0x45fc229b11597634});
}

TEST_CASE("the parent, every token and every field of the root change the hash") {
  std::set<PrefixHash> seen;
  seen.insert(hash_root(kKey, {}));
  seen.insert(hash_root(kKey, {.weight_version = 1}));
  seen.insert(hash_root(kKey, {.adapter = 1}));
  seen.insert(hash_root(kKey, {.adapter_version = 1}));
  seen.insert(hash_root(kKey, {.salt = "a"}));
  CHECK(seen.size() == 5);
  const PrefixHash root = hash_root(kKey, {});
  const PrefixHash first = hash_block(kKey, root, std::vector<TokenId>{1, 2});
  seen.insert(first);
  seen.insert(hash_block(kKey, first, std::vector<TokenId>{1, 2}));
  seen.insert(hash_block(kKey, root, std::vector<TokenId>{1, 3}));
  seen.insert(hash_block(kKey, root, std::vector<TokenId>{2, 1}));
  CHECK(seen.size() == 9);
}

TEST_CASE("one key gives one hash, another key another") {
  const std::vector<TokenId> tokens = {5, 6, 7};
  const PrefixHash root = hash_root(kKey, {});
  CHECK(hash_block(kKey, root, tokens) == hash_block(kKey, root, tokens));
  CHECK(hash_block({1, 2}, root, tokens) != hash_block(kKey, root, tokens));
}

}  // namespace
}  // namespace tandem::rollout
