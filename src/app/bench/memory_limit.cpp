#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "app/bench/machine_limits.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kWords = std::int64_t{64} << 20;  // of 8 bytes: more than caches hold
constexpr int kRepeats = 4;

// Integers, which the compiler may sum in any order and so in vectors.
[[gnu::optimize("O3")]] std::uint64_t sum_of(const std::uint64_t* words, std::int64_t count) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    sum += words[i];
  }
  return sum;
}

}  // namespace

double dram_read_gb_per_s() {
  // Not initialised by `new`: each thread touches its own part first.
  const std::unique_ptr<std::uint64_t[]> words(new std::uint64_t[kWords]);
  const int threads = compute_pool().num_threads();
  const std::int64_t part = kWords / threads;
  compute_pool().parallel_for(threads, [&](std::int64_t i) {
    std::fill_n(words.get() + i * part, part, std::uint64_t{1});
  });
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads));
  double best = 1e30;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const Stopwatch watch;
    compute_pool().parallel_for(threads, [&](std::int64_t i) {
      sums[static_cast<std::size_t>(i)] += sum_of(words.get() + i * part, part);
    });
    best = std::min(best, watch.seconds());
  }
  const bool all_read = sums.front() == static_cast<std::uint64_t>(kRepeats * part);
  return all_read ? static_cast<double>(part * threads) * 8 / best / 1e9 : 0;
}

MachineLimits measure_machine_limits() {
  return {fma_limit_gflops(), bf16_dot_limit_gflops(), dram_read_gb_per_s()};
}

}  // namespace tandem::app
