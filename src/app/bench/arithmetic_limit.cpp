#include <algorithm>
#include <cstdint>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "app/bench/machine_limits.h"
#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kRounds = 2'000'000;
constexpr int kChains = 12;  // enough to hide the latency of one

// A loop over kChains independent accumulators of `Vec`; returns a value that depends on all.
template <class Vec>
[[gnu::always_inline]] inline float run_chains() {
  constexpr int kLanes = sizeof(Vec) / sizeof(float);
  Vec sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) {
    sums[i] = Vec{} + static_cast<float>(i);
  }
  Vec a = Vec{} + 0.999F;
  Vec b = Vec{} + 1e-3F;
  asm volatile("" : "+v"(a), "+v"(b));  // not known to the compiler
  for (std::int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12  // or the sums would live in memory
    for (auto& sum : sums) {
      sum = sum * a + b;
    }
  }
  float total = 0;
  for (const auto& sum : sums) {
    total += sum[0] + sum[kLanes - 1];
  }
  return total;
}

using Vec16 = float __attribute__((vector_size(64)));
using Vec8 = float __attribute__((vector_size(32)));
using Vec4 = float __attribute__((vector_size(16)));

#if defined(__x86_64__)
[[gnu::target("avx512f,fma"), gnu::optimize("O3", "fp-contract=fast")]] float run_avx512() {
  return run_chains<Vec16>();
}
[[gnu::target("avx2,fma"), gnu::optimize("O3", "fp-contract=fast")]] float run_avx2() {
  return run_chains<Vec8>();
}
#endif

#if defined(__x86_64__)
[[gnu::target("avx512f,avx512bf16"), gnu::optimize("O3")]] float run_bf16_dots() {
  __m512 sums[kChains];
#pragma GCC unroll 12
  for (int i = 0; i < kChains; ++i) {
    sums[i] = _mm512_set1_ps(static_cast<float>(i));
  }
  __m512i a = _mm512_set1_epi16(0x3f00);  // 0.5
  asm volatile("" : "+v"(a));             // not known to the compiler
  for (std::int64_t round = 0; round < kRounds; ++round) {
#pragma GCC unroll 12
    for (auto& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)a);
    }
  }
  float total = 0;
  for (const auto& sum : sums) {
    total += sum[0] + sum[15];
  }
  return total;
}
#endif

struct Loop {
  float (*run)();
  int lanes;
};

Loop loop_of(kernels::Isa isa) {
#if defined(__x86_64__)
  if (isa == kernels::Isa::kAvx512) {
    return {&run_avx512, 16};
  }
  if (isa == kernels::Isa::kAvx2) {
    return {&run_avx2, 8};
  }
#endif
  return {[] { return run_chains<Vec4>(); }, 4};
}

// GFLOP/s of the loop on all compute threads.
double gflops_of(const Loop& loop) {
  const int threads = compute_pool().num_threads();
  std::vector<float> results(static_cast<std::size_t>(threads));
  double best = 1e30;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const Stopwatch watch;
    compute_pool().parallel_for(
        threads, [&](std::int64_t i) { results[static_cast<std::size_t>(i)] = loop.run(); });
    best = std::min(best, watch.seconds());
  }
  return 2.0 * kChains * loop.lanes * static_cast<double>(kRounds) * threads / best / 1e9;
}

}  // namespace

double fma_limit_gflops() {
  return gflops_of(loop_of(kernels::isa()));
}

double bf16_dot_limit_gflops() {
#if defined(__x86_64__)
  if (kernels::isa() == kernels::Isa::kAvx512 && __builtin_cpu_supports("avx512bf16") != 0) {
    return gflops_of({&run_bf16_dots, 32});
  }
#endif
  return 0;
}

}  // namespace tandem::app
