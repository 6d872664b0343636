#include "app/bench/kernel_figures.h"

#include <algorithm>

#include "base/stopwatch.h"

namespace tandem::app {
namespace {

// Seconds of one call: the fastest of several stretches of at least 50 ms.
double seconds_of(const std::function<void()>& call) {
  call();
  double best = 1e30;
  for (int stretch = 0; stretch < 3; ++stretch) {
    const Stopwatch watch;
    int calls = 0;
    do {
      call();
      ++calls;
    } while (watch.seconds() < 0.05);
    best = std::min(best, watch.seconds() / calls);
  }
  return best;
}

void add_gflops(
    BenchResult& result, const std::string& name, double flops, double seconds, double limit) {
  const double gflops = flops / seconds / 1e9;
  result.figures["gflops/" + name] = gflops;
  result.figures["share_of_limit/" + name] = gflops / limit;
}

}  // namespace

double KernelFigures::add_product(const std::string& name,
                                  double flops,
                                  const std::function<void()>& call) {
  const double seconds = seconds_of(call);
  add_gflops(result_, name, flops, seconds, ceilings_.gflops);
  return seconds;
}

void KernelFigures::add_flops(const std::string& name,
                              double flops,
                              const std::function<void()>& call) {
  add_gflops(result_, name, flops, seconds_of(call), ceilings_.fma_gflops);
}

void KernelFigures::add_bytes(const std::string& name,
                              double bytes,
                              const std::function<void()>& call) {
  add_rate(name, bytes, seconds_of(call));
}

void KernelFigures::add_rate(const std::string& name, double bytes, double seconds) {
  const double gb_per_s = bytes / seconds / 1e9;
  result_.figures["gb_per_s/" + name] = gb_per_s;
  result_.figures["share_of_dram/" + name] = gb_per_s / ceilings_.dram_gb_per_s;
}

}  // namespace tandem::app
