#include "rollout/prefix_cache.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::rollout {
namespace {

using Tokens = std::vector<TokenId>;

PrefixCache make_cache(std::int32_t hash_bits = 128) {
  return PrefixCache({.num_blocks = 8, .block_size = 2, .hash_bits = hash_bits});
}

TEST_CASE("a block is found after the prefix it was inserted behind, and only there") {
  PrefixCache cache = make_cache();
  PrefixCursor end = cache.root({});
  cache.insert(3, end, Tokens{1, 2});
  cache.insert(4, end, Tokens{1, 2});

  PrefixCursor at = cache.root({});
  CHECK(cache.find(at, Tokens{1, 2}) == 3);
  CHECK(cache.find(at, Tokens{1, 2}) == 4);
  CHECK_FALSE(cache.find(at, Tokens{1, 2}));
  CHECK(at.content == end.content);
  cache.check_invariants();
}

TEST_CASE("hashing block by block or all at once leads to the same place") {
  PrefixCache cache = make_cache();
  PrefixCursor a = cache.root({});
  cache.insert(1, a, Tokens{1, 2});
  cache.insert(2, a, Tokens{3, 4});
  PrefixCursor b = cache.root({});
  CHECK(cache.find(b, Tokens{1, 2}) == 1);
  CHECK(cache.find(b, Tokens{3, 4}) == 2);
  CHECK(a.hash == b.hash);
}

TEST_CASE("roots that differ in version, adapter or salt share nothing") {
  PrefixCache cache = make_cache();
  PrefixCursor at = cache.root({.weight_version = 1, .adapter = 1, .salt = "x"});
  cache.insert(1, at, Tokens{1, 2});
  for (const CacheRoot& other : {CacheRoot{2, 1, 0, "x"},
                                 CacheRoot{1, 2, 0, "x"},
                                 CacheRoot{1, 1, 1, "x"},
                                 CacheRoot{1, 1, 0, "y"}}) {
    PrefixCursor cursor = cache.root(other);
    CHECK_FALSE(cache.find(cursor, Tokens{1, 2}));
  }
  PrefixCursor same = cache.root({.weight_version = 1, .adapter = 1, .salt = "x"});
  CHECK(cache.find(same, Tokens{1, 2}) == 1);
}

TEST_CASE("with a hash of one bit, colliding prefixes never answer for each other") {
  PrefixCache cache = make_cache(1);
  PrefixCursor a = cache.root({});
  PrefixCursor b = cache.root({.salt = "other"});
  cache.insert(1, a, Tokens{1, 2});
  cache.insert(2, a, Tokens{5, 6});
  cache.insert(3, b, Tokens{3, 4});
  cache.insert(4, b, Tokens{5, 6});  // the tokens of block 2 behind another prefix
  PrefixCursor at = cache.root({.salt = "other"});
  CHECK(cache.find(at, Tokens{3, 4}) == 3);
  CHECK(cache.find(at, Tokens{5, 6}) == 4);
  at = cache.root({});
  CHECK_FALSE(cache.find(at, Tokens{3, 4}));
  CHECK(cache.find(at, Tokens{1, 2}) == 1);
  CHECK(cache.find(at, Tokens{5, 6}) == 2);
  cache.check_invariants();
}

TEST_CASE("two blocks of one content stand for one prefix, and either may go") {
  PrefixCache cache = make_cache();
  PrefixCursor a = cache.root({});
  PrefixCursor b = cache.root({});
  cache.insert(1, a, Tokens{1, 2});
  cache.insert(2, b, Tokens{1, 2});
  cache.insert(3, b, Tokens{3, 4});
  cache.erase(1);
  PrefixCursor at = cache.root({});
  CHECK(cache.find(at, Tokens{1, 2}) == 2);
  CHECK(cache.find(at, Tokens{3, 4}) == 3);
  cache.erase(1);  // once more changes nothing
  cache.check_invariants();
}

TEST_CASE("forgotten roots start anew, and old blocks are out of reach") {
  PrefixCache cache = make_cache();
  PrefixCursor at = cache.root({});
  cache.insert(1, at, Tokens{1, 2});
  cache.forget_roots();
  PrefixCursor again = cache.root({});
  CHECK_FALSE(cache.find(again, Tokens{1, 2}));
  CHECK(cache.is_cached(1));
}

TEST_CASE("a cached block is not inserted twice") {
  PrefixCache cache = make_cache();
  PrefixCursor at = cache.root({});
  cache.insert(1, at, Tokens{1, 2});
  CHECK_THROWS_AS(cache.insert(1, at, Tokens{3, 4}), Error);
  CHECK_THROWS_AS(make_cache(0), Error);
}

}  // namespace
}  // namespace tandem::rollout
