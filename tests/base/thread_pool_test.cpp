#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <doctest/doctest.h>

namespace tandem {
namespace {

TEST_CASE("every task runs exactly once, whatever the number of threads") {
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (const int tasks : {0, 1, 2, 3, 1000}) {
      std::vector<int> runs(static_cast<std::size_t>(tasks), 0);
      pool.parallel_for(tasks, [&](std::int64_t i) { ++runs[static_cast<std::size_t>(i)]; });
      CHECK(std::accumulate(runs.begin(), runs.end(), 0) == tasks);
      CHECK(std::count(runs.begin(), runs.end(), 1) == tasks);
    }
  }
}

TEST_CASE("many short loops in a row neither hang nor lose a task") {
  ThreadPool pool(3);
  std::atomic<int> sum{0};
  for (int loop = 0; loop < 20000; ++loop) {
    pool.parallel_for(4, [&](std::int64_t) { sum.fetch_add(1, std::memory_order_relaxed); });
  }
  CHECK(sum == 80000);
}

TEST_CASE("an exception of a task reaches the caller and the pool goes on working") {
  ThreadPool pool(2);
  const auto failing = [](std::int64_t i) {
    if (i == 7) {
      throw std::runtime_error("task 7");
    }
  };
  CHECK_THROWS_WITH(pool.parallel_for(20, failing), "task 7");
  std::atomic<int> count{0};
  pool.parallel_for(20, [&](std::int64_t) { ++count; });
  CHECK(count == 20);
}

TEST_CASE("a loop inside a task runs on the calling thread") {
  ThreadPool pool(2);
  std::atomic<int> count{0};
  pool.parallel_for(4, [&](std::int64_t) { pool.parallel_for(5, [&](std::int64_t) { ++count; }); });
  CHECK(count == 20);
}

}  // namespace
}  // namespace tandem
