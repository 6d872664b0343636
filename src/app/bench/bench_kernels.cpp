#include <algorithm>
#include <functional>
#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/bench/bench_case.h"
#include "app/bench/machine_limits.h"
#include "base/stopwatch.h"
#include "kernels/isa.h"
#include "kernels/linear.h"
#include "kernels/product.h"
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

// Rate of a product, and its share of what binds it.
struct Ceilings {
  double gflops;  // of the arithmetic in use, on registers alone
  double dram_gb_per_s;
};

void add_figures(BenchResult& result,
                 const std::string& name,
                 double flops,
                 double seconds,
                 const Ceilings& ceilings) {
  const double gflops = flops / seconds / 1e9;
  result.figures["gflops/" + name] = gflops;
  result.figures["share_of_limit/" + name] = gflops / ceilings.gflops;
}

void bench_forward(BenchResult& result,
                   const std::string& product,
                   const at::Tensor& value,
                   std::int64_t slices,
                   const Ceilings& ceilings) {
  for (const std::int64_t rows : {1, 8, 32, 128, 512}) {
    const auto x = at::randn({rows, value.size(1)}).to(value.scalar_type());
    const double seconds = seconds_of([&] { kernels::linear(x, {value, {}}, {}, slices); });
    const std::string name = product + "_m" + std::to_string(rows);
    add_figures(result, name, 2.0 * static_cast<double>(rows * value.numel()), seconds, ceilings);
    if (rows == 1) {
      const double gb_per_s = static_cast<double>(value.nbytes()) / seconds / 1e9;
      result.figures["weight_gb_per_s/" + name] = gb_per_s;
      result.figures["share_of_dram/" + name] = gb_per_s / ceilings.dram_gb_per_s;
    }
  }
}

// Both products of the backward pass, at the rows of a micro-batch.
void bench_backward(BenchResult& result,
                    const std::string& product,
                    const at::Tensor& value,
                    const Ceilings& ceilings) {
  constexpr std::int64_t kRows = 512;
  const auto x = at::randn({kRows, value.size(1)}).to(value.scalar_type());
  const auto dy = at::randn({kRows, value.size(0)}).to(value.scalar_type());
  const auto dx = at::zeros(x.sizes());
  const auto dw = at::zeros(value.sizes());
  const double flops = 2.0 * static_cast<double>(kRows * value.numel());
  const auto seconds_dx = seconds_of([&] { kernels::add_input_gradient(dy, value, dx); });
  add_figures(result, product + "_dx_m512", flops, seconds_dx, ceilings);
  const auto seconds_dw = seconds_of([&] { kernels::add_weight_gradient(dy, x, dw); });
  add_figures(result, product + "_dw_m512", flops, seconds_dw, ceilings);
}

}  // namespace

BenchResult bench_kernels(const Session& session) {
  const at::NoGradGuard no_grad;
  BenchResult result;
  const MachineLimits limits = measure_machine_limits();
  result.figures["fma_limit_gflops"] = limits.fma_gflops;
  result.figures["bf16_dot_limit_gflops"] = limits.bf16_dot_gflops;
  result.figures["dram_gb_per_s"] = limits.dram_gb_per_s;
  const bool dots = session.weights->dtype() != at::kFloat &&
                    kernels::arithmetic() == kernels::Arithmetic::kDotBf16;
  const Ceilings ceilings = {dots ? limits.bf16_dot_gflops : limits.fma_gflops,
                             limits.dram_gb_per_s};
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
    bench_forward(result, product.name, value, product.slices, ceilings);
    if (value.size(0) <= 8192) {  // the head's are made in chunks of the vocabulary
      bench_backward(result, product.name, value, ceilings);
    }
  }
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tandem::app
