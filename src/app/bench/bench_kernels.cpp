#include <string>

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "app/bench/bench_case.h"
#include "app/bench/kernel_figures.h"
#include "app/bench/machine_limits.h"
#include "base/stopwatch.h"
#include "kernels/isa.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "model/decoder.h"

namespace tandem::app {
namespace {

void bench_forward(KernelFigures& figures,
                   const std::string& product,
                   const at::Tensor& value,
                   std::int64_t slices) {
  for (const std::int64_t rows : {1, 8, 32, 128, 512}) {
    const auto x = at::randn({rows, value.size(1)}).to(value.scalar_type());
    const std::string name = product + "_m" + std::to_string(rows);
    const double flops = 2.0 * static_cast<double>(rows * value.numel());
    const double seconds = figures.add_product(name, flops, [&] {
      kernels::linear(x, {value, {}}, {}, slices);
    });
    if (rows == 1) {
      figures.add_rate(name, static_cast<double>(value.nbytes()), seconds);
    }
  }
}

// Both products of the backward pass, at the rows of a micro-batch.
void bench_backward(KernelFigures& figures, const std::string& product, const at::Tensor& value) {
  constexpr std::int64_t kRows = 512;
  const auto x = at::randn({kRows, value.size(1)}).to(value.scalar_type());
  const auto dy = at::randn({kRows, value.size(0)}).to(value.scalar_type());
  const auto dx = at::zeros(x.sizes());
  const auto dw = at::zeros(value.sizes());
  const double flops = 2.0 * static_cast<double>(kRows * value.numel());
  figures.add_product(
      product + "_dx_m512", flops, [&] { kernels::add_input_gradient(dy, value, dx); });
  figures.add_product(
      product + "_dw_m512", flops, [&] { kernels::add_weight_gradient(dy, x, dw); });
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
  KernelFigures figures(result,
                        {.gflops = dots ? limits.bf16_dot_gflops : limits.fma_gflops,
                         .fma_gflops = limits.fma_gflops,
                         .dram_gb_per_s = limits.dram_gb_per_s});
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
    bench_forward(figures, product.name, value, product.slices);
    if (value.size(0) <= 8192) {  // the head's are made in chunks of the vocabulary
      bench_backward(figures, product.name, value);
    }
  }
  bench_row_kernels(session, figures);
  result.seconds = watch.seconds();
  return result;
}

}  // namespace tandem::app
