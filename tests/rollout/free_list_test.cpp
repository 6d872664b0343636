#include "rollout/free_list.h"

#include <doctest/doctest.h>

namespace tandem::rollout {
namespace {

using Blocks = std::vector<BlockId>;

TEST_CASE("an empty list gives nothing") {
  FreeList list(3);
  CHECK(list.size() == 0);
  CHECK_FALSE(list.pop_front());
  CHECK(list.to_vector().empty());
}

TEST_CASE("a list of one block is emptied and filled again") {
  FreeList list(1);
  list.push_back(0);
  CHECK(list.contains(0));
  CHECK(list.pop_front() == 0);
  CHECK_FALSE(list.contains(0));
  CHECK_FALSE(list.pop_front());
  list.push_front(0);
  CHECK(list.size() == 1);
}

TEST_CASE("blocks come in the order of the list, front first") {
  FreeList list(4);
  list.push_back(2);
  list.push_back(0);
  list.push_front(3);
  CHECK(list.to_vector() == Blocks{3, 2, 0});
  CHECK(list.pop_front() == 3);
  CHECK(list.pop_front() == 2);
  CHECK(list.pop_front() == 0);
  CHECK_FALSE(list.pop_front());
}

TEST_CASE("removal from the front, the middle and the back keeps the order of the others") {
  FreeList list(5);
  for (BlockId block = 0; block < 5; ++block) {
    list.push_back(block);
  }
  list.remove(2);
  CHECK(list.to_vector() == Blocks{0, 1, 3, 4});
  list.remove(0);
  list.remove(4);
  CHECK(list.to_vector() == Blocks{1, 3});
  list.push_back(2);
  CHECK(list.to_vector() == Blocks{1, 3, 2});
  CHECK(list.size() == 3);
}

}  // namespace
}  // namespace tandem::rollout
