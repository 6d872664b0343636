// Which rows of a call share their loads.
#include "kernels/attention_plan.h"

#include <numeric>
#include <vector>

#include "kernels/attention_cases.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

const AttentionShape kShape = {9, 3, 64, 0, 1, 0};

// One row at the end of each of `count` paths, `shared` of whose `length` slots are the first
// one's.
KeyPaths forked_rows(int count, std::int32_t shared, std::int32_t length) {
  test::PathBuilder builder;
  for (std::int32_t i = 0; i < count; ++i) {
    std::vector<std::int32_t> slots(length);
    std::iota(slots.begin(), slots.end(), i * length);
    std::iota(slots.begin(), slots.begin() + shared, 0);
    builder.add(slots, length - 1);
  }
  return builder.paths();
}

std::vector<ForwardTask> plan(const std::vector<QueryBlock>& blocks, std::int64_t num_threads) {
  return plan_forward(blocks, kShape, num_threads);
}

TEST_CASE("rows whose paths begin alike are one group up to the last whole tile they share") {
  const KeyPaths paths = forked_rows(8, 100, 150);
  const auto blocks = plan_blocks(paths, kShape, 8, 8 * 150);
  const auto groups = group_blocks(blocks, 10);
  REQUIRE(groups.size() == 1);
  CHECK(groups[0].num_rows == 8);
  CHECK(groups[0].num_shared == 96);
}

TEST_CASE("a path that shares less than half of what the others do starts a group of its own") {
  test::PathBuilder builder;
  std::vector<std::int32_t> slots(100);
  std::iota(slots.begin(), slots.end(), 0);
  builder.add(slots, 99);
  slots.back() = 100;
  builder.add(slots, 99);
  std::iota(slots.begin() + 32, slots.end(), 200);
  builder.add(slots, 99);
  const KeyPaths paths = builder.paths();
  const auto blocks = plan_blocks(paths, kShape, 3, 300);
  const auto groups = group_blocks(blocks, 10);
  REQUIRE(groups.size() == 2);
  CHECK(groups[0].num_rows == 2);
  CHECK(groups[0].num_shared == 96);
  CHECK(groups[1].num_shared == 0);
}

TEST_CASE("every row and head is in one task, and few rows still make work for all threads") {
  for (const int num_rows : {1, 2, 8, 64}) {
    for (const std::int64_t num_threads : {1, 2, 8}) {
      const KeyPaths paths = forked_rows(num_rows, 64, 80);
      const auto blocks = plan_blocks(paths, kShape, num_rows, std::int64_t{80} * num_rows);
      const auto tasks = plan(blocks, num_threads);
      std::int64_t pairs = 0;
      for (const ForwardTask& task : tasks) {
        pairs += task.group.num_rows * task.num_kv_heads;
      }
      CHECK(pairs == num_rows * kShape.num_kv_heads);
      CHECK(std::ssize(tasks) >=
            std::min<std::int64_t>(num_rows * kShape.num_kv_heads, num_threads));
    }
  }
}

}  // namespace
}  // namespace tandem::kernels
