#include "rollout/block_manager.h"

#include <numeric>
#include <type_traits>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::rollout {
namespace {

static_assert(!std::is_copy_constructible_v<BlockTable>);
static_assert(!std::is_copy_assignable_v<BlockTable>);

using Blocks = std::vector<BlockId>;
using Tokens = std::vector<TokenId>;

constexpr BlockManagerConfig kSmall = {.num_blocks = 9, .block_size = 4};

Tokens count_up(std::int64_t size, TokenId first = 0) {
  Tokens tokens(static_cast<std::size_t>(size));
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

Blocks blocks_of(const BlockTable& table) {
  return {table.blocks().begin(), table.blocks().end()};
}

// A table for `ids` with all of them computed and committed.
BlockTable fill(BlockManager& manager, const Tokens& ids, const CacheRoot& root = {}) {
  auto table = manager.allocate(manager.match(root, ids), static_cast<std::int64_t>(ids.size()));
  REQUIRE(table);
  manager.commit(*table, ids, static_cast<std::int64_t>(ids.size()));
  return std::move(*table);
}

TEST_CASE("a second sequence with the same prefix takes exactly its full blocks") {
  BlockManager manager(kSmall);
  const BlockTable first = fill(manager, count_up(10));
  Tokens other = count_up(10);
  other[9] = 99;
  const PrefixMatch match = manager.match({}, other);
  CHECK(match.blocks == Blocks{1, 2});
  CHECK(match.num_idle == 0);
  const BlockTable second = fill(manager, other);
  CHECK(blocks_of(second) == Blocks{1, 2, 4});
  CHECK(manager.num_owners(1) == 2);
  CHECK(manager.num_owners(2) == 2);
  CHECK(manager.num_owners(3) == 1);
  manager.check_invariants(std::vector{&first, &second});
}

TEST_CASE("the tail of a chain is evicted before its head, unhashed blocks before hashed ones") {
  BlockManager manager(kSmall);
  {
    const BlockTable a = fill(manager, count_up(9));       // blocks 1 2 3, the last not full
    const BlockTable b = fill(manager, count_up(8, 100));  // blocks 4 5
  }
  // b is destroyed first: 5 then 4 to the back; then of a: 3 to the front, 2 and 1 to the back.
  CHECK(manager.free_list().to_vector() == Blocks{3, 6, 7, 8, 5, 4, 2, 1});
  manager.check_invariants({});
}

TEST_CASE("of a fully cached prompt of k blocks, k - 1 are hit: the last token is computed") {
  BlockManager manager(kSmall);
  fill(manager, count_up(12));
  CHECK(manager.match({}, count_up(12)).blocks.size() == 2);
  CHECK(manager.match({}, count_up(13)).blocks.size() == 3);
  CHECK(manager.match({}, count_up(11)).blocks.size() == 2);
  CHECK(manager.match({}, count_up(1)).blocks.empty());
}

TEST_CASE("a block filled token by token is found by a fresh prompt") {
  BlockManager manager(kSmall);
  auto table = manager.allocate(manager.match({}, count_up(3)), 3);
  REQUIRE(table);
  const Tokens ids = count_up(9);
  for (std::int64_t computed = 3; computed <= 8; ++computed) {
    REQUIRE(manager.extend(*table, computed));
    CHECK(manager.match({}, ids).blocks.size() == static_cast<std::size_t>((computed - 1) / 4));
    manager.commit(*table, ids, computed);
  }
  CHECK(manager.match({}, ids).blocks == Blocks{1, 2});
}

TEST_CASE("a block is not found before the forward that wrote it") {
  BlockManager manager(kSmall);
  auto table = manager.allocate(manager.match({}, count_up(9)), 9);
  CHECK(manager.match({}, count_up(9)).blocks.empty());
  manager.commit(*table, count_up(9), 4);
  CHECK(manager.match({}, count_up(9)).blocks == Blocks{1});
}

TEST_CASE("a cached block that is given out again is found no more") {
  BlockManager manager({.num_blocks = 4, .block_size = 4});
  fill(manager, count_up(12));
  CHECK(manager.free_list().to_vector() == Blocks{3, 2, 1});
  const BlockTable other = fill(manager, count_up(8, 50));  // takes 3 and 2, the chain's tail
  CHECK(blocks_of(other) == Blocks{3, 2});
  CHECK(manager.match({}, count_up(13)).blocks == Blocks{1});
  manager.check_invariants(std::vector{&other});
}

TEST_CASE("blocks that were hit are not taken as fresh ones in the same allocation") {
  BlockManager manager({.num_blocks = 5, .block_size = 4});
  fill(manager, count_up(16));  // frees 4 3 2 1 in this order
  const PrefixMatch match = manager.match({}, count_up(9));
  CHECK(match.num_idle == 2);
  const auto table = manager.allocate(match, 16);
  REQUIRE(table);
  CHECK(blocks_of(*table) == Blocks{1, 2, 4, 3});
  CHECK(manager.num_free() == 0);
}

TEST_CASE("a short pool refuses and changes nothing") {
  BlockManager manager({.num_blocks = 4, .block_size = 4});
  fill(manager, count_up(8));
  const Blocks free_before = manager.free_list().to_vector();
  const PrefixMatch match = manager.match({}, count_up(9));
  CHECK_FALSE(manager.allocate(match, 16));
  CHECK(manager.free_list().to_vector() == free_before);
  CHECK(manager.match({}, count_up(9)).blocks == match.blocks);

  auto table = manager.allocate(match, 8);
  REQUIRE(table);
  const Blocks before = blocks_of(*table);
  CHECK_FALSE(manager.extend(*table, 17));
  CHECK(blocks_of(*table) == before);
  CHECK(manager.extend(*table, 12));
  manager.check_invariants(std::vector{&*table});
}

TEST_CASE("the predicted number of blocks is the number taken, for any length, hit and lookahead") {
  for (std::int64_t length = 1; length <= 13; ++length) {
    for (std::int64_t hit = 0; hit <= length; hit += 4) {
      for (std::int64_t lookahead = 0; lookahead <= 5; ++lookahead) {
        BlockManager manager(kSmall);
        if (hit > 0) {
          fill(manager, count_up(hit));
        }
        const PrefixMatch match = manager.match({}, count_up(length));
        const auto num_hits = static_cast<std::int64_t>(match.blocks.size());
        const std::int64_t predicted =
            manager.blocks_for(length + lookahead) - num_hits + match.num_idle;
        const std::int64_t before = manager.num_free();
        auto table = manager.allocate(match, length);
        REQUIRE(table);
        REQUIRE(manager.extend(*table, length + lookahead));
        CHECK(before - manager.num_free() == predicted);
      }
    }
  }
}

TEST_CASE("the cache is emptied when idle, and not while a block is in use") {
  BlockManager manager(kSmall);
  {
    const BlockTable table = fill(manager, count_up(8));
    CHECK_FALSE(manager.reset_cache());
    CHECK(manager.match({}, count_up(9)).blocks.size() == 2);
  }
  CHECK(manager.reset_cache());
  CHECK(manager.match({}, count_up(9)).blocks.empty());
  manager.check_invariants({});
}

TEST_CASE("after the weights changed nothing is hit, and running tables go on") {
  BlockManager manager(kSmall);
  auto table = fill(manager, count_up(6), {.weight_version = 1});
  manager.forget_roots();
  CHECK(manager.match({.weight_version = 2}, count_up(9)).blocks.empty());
  REQUIRE(manager.extend(table, 8));
  manager.commit(table, count_up(8), 8);  // mixed rows: must not be found under the new version
  CHECK(manager.match({.weight_version = 2}, count_up(9)).blocks.empty());
  manager.check_invariants(std::vector{&table});
}

TEST_CASE("a fork shares full blocks and copies the partly filled one") {
  BlockManager manager(kSmall);
  BlockTable parent = fill(manager, count_up(10));  // 1 2 3
  auto child = manager.fork(parent, 10);
  REQUIRE(child);
  CHECK(blocks_of(*child) == Blocks{1, 2, 4});
  CHECK(child->pending_copy() == BlockCopy{3, 4});
  CHECK(manager.num_owners(3) == 2);  // kept for the copy
  manager.check_invariants(std::vector<const BlockTable*>{&parent, &*child});
  manager.copied(*child);
  CHECK(manager.num_owners(3) == 1);
  CHECK_FALSE(child->pending_copy());

  // Each goes on in blocks of its own.
  REQUIRE(manager.extend(parent, 13));
  REQUIRE(manager.extend(*child, 13));
  CHECK(blocks_of(parent) == Blocks{1, 2, 3, 5});
  CHECK(blocks_of(*child) == Blocks{1, 2, 4, 6});
}

TEST_CASE("a fork at a block's end copies nothing and needs no block") {
  BlockManager manager({.num_blocks = 3, .block_size = 4});
  const BlockTable parent = fill(manager, count_up(8));
  CHECK(manager.num_free() == 0);
  const auto child = manager.fork(parent, 8);
  REQUIRE(child);
  CHECK_FALSE(child->pending_copy());
  manager.check_invariants(std::vector<const BlockTable*>{&parent, &*child});
}

TEST_CASE("the source of a pending copy outlives its table") {
  BlockManager manager({.num_blocks = 3, .block_size = 4});
  std::optional<BlockTable> parent = fill(manager, count_up(3));
  auto child = manager.fork(*parent, 3);
  REQUIRE(child);
  CHECK_FALSE(manager.fork(*parent, 3));  // no block for a second one
  parent.reset();
  CHECK(manager.num_free() == 0);
  manager.check_invariants(std::vector<const BlockTable*>{&*child});
  child.reset();
  CHECK(manager.num_free() == 2);
}

TEST_CASE("a fork needs a parent whose rows are written") {
  BlockManager manager(kSmall);
  auto table = manager.allocate(manager.match({}, count_up(9)), 9);
  CHECK_THROWS_AS((void)manager.fork(*table, 9), Error);
}

TEST_CASE("a pool without a usable block, or without a block size, is refused") {
  CHECK_THROWS_AS(BlockManager({.num_blocks = 1, .block_size = 4}), Error);
  CHECK_THROWS_AS(BlockManager({.num_blocks = 4, .block_size = 0}), Error);
}

TEST_CASE("the invariants notice a table that nobody declared") {
  BlockManager manager(kSmall);
  const BlockTable table = fill(manager, count_up(4));
  CHECK_THROWS_AS(manager.check_invariants({}), Error);
  CHECK_THROWS_AS(manager.check_invariants(std::vector{&table, &table}), Error);
}

}  // namespace
}  // namespace tandem::rollout
