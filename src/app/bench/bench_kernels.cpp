#include <algorithm>
#include <functional>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/bench/bench_case.h"
#include "app/bench/machine_limits.h"
#include "base/stopwatch.h"
#include "kernels/linear.h"
#include "model/decoder.h"

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

}  // namespace

BenchResult bench_kernels(const Session& session) {
  const at::NoGradGuard no_grad;
  BenchResult result;
  const MachineLimits limits = measure_machine_limits();
  const double limit = limits.fma_gflops;
  result.figures["fma_limit_gflops"] = limit;
  result.figures["bf16_dot_limit_gflops"] = limits.bf16_dot_gflops;
  result.figures["dram_gb_per_s"] = limits.dram_gb_per_s;
  const auto& layer = session.weights->layers().at(0);
  const auto& c = session.decoder->config();
  struct Product {
    const char* name;
    const kernels::Weight* weight;
    std::int64_t slices;
  };
  const Product products[] = {{"qkv", &layer.qkv, 1},
                              {"o", &layer.o, c.num_kv_heads},
                              {"gate_up", &layer.gate_up, 1},
                              {"down", &layer.down, model::down_slices(c.intermediate_size)},
                              {"head", &session.weights->head(), 1}};
  const Stopwatch watch;
  for (const auto& product : products) {
    const auto& value = product.weight->value;
    const kernels::Weight frozen = {value, {}};
    for (const std::int64_t rows : {1, 8, 32, 128, 512}) {
      const auto x = at::randn({rows, value.size(1)}).to(value.scalar_type());
      const double seconds = seconds_of([&] { kernels::linear(x, frozen, {}, product.slices); });
      const double flops = 2.0 * static_cast<double>(rows * value.numel());
      const std::string name = product.name + ("_m" + std::to_string(rows));
      result.figures["gflops/" + name] = flops / seconds / 1e9;
      result.figures["share_of_fma_limit/" + name] = flops / seconds / 1e9 / limit;
      if (rows == 1) {
        result.figures["weight_gb_per_s/" + name] =
            static_cast<double>(value.nbytes()) / seconds / 1e9;
      }
    }
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tandem::app
