// Rates of the matrix products, as shares of what the machine's multiply-add units and memory can
// do, beside LibTorch's.  gemm_bench [THREADS [SECONDS_A_CASE [wall|cpu [PART_OF_NAME [ISA]]]]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "support/bench.h"

namespace tandem {
namespace {

double seconds_a_case = 0.3;
bool cpu_time = false;
std::string filter;

#if defined(__x86_64__)
// Twelve independent chains in registers, `rounds` times; REG is zmm or ymm.
#define TANDEM_FMA(reg, i) "vfmadd231ps %%" reg "0, %%" reg "1, %%" reg #i "\n"
#define TANDEM_FMAS(reg) \
  TANDEM_FMA(reg, 2)     \
  TANDEM_FMA(reg, 3)     \
  TANDEM_FMA(reg, 4)     \
  TANDEM_FMA(reg, 5)     \
  TANDEM_FMA(reg, 6)     \
  TANDEM_FMA(reg, 7)     \
  TANDEM_FMA(reg, 8)     \
  TANDEM_FMA(reg, 9)     \
  TANDEM_FMA(reg, 10) TANDEM_FMA(reg, 11) TANDEM_FMA(reg, 12) TANDEM_FMA(reg, 13)
#define TANDEM_PROBE(reg, rounds)                         \
  asm volatile("1:\n" TANDEM_FMAS(reg) "dec %0\njnz 1b\n" \
               : "+r"(rounds)                             \
               :                                          \
               : "cc",                                    \
                 "xmm0",                                  \
                 "xmm1",                                  \
                 "xmm2",                                  \
                 "xmm3",                                  \
                 "xmm4",                                  \
                 "xmm5",                                  \
                 "xmm6",                                  \
                 "xmm7",                                  \
                 "xmm8",                                  \
                 "xmm9",                                  \
                 "xmm10",                                 \
                 "xmm11",                                 \
                 "xmm12",                                 \
                 "xmm13")

void run_fmas(bool wide, std::int64_t rounds) {
  if (wide) {
    TANDEM_PROBE("zmm", rounds);
  } else {
    TANDEM_PROBE("ymm", rounds);
  }
}

// GFLOP/s of multiply-adds on registers alone, over all threads.
double fma_limit() {
  const bool wide = kernels::isa() == kernels::Isa::kAvx512;
  constexpr std::int64_t kRounds = 200000;
  const auto times = bench::measure(
      [&] {
        compute_pool().parallel_for(compute_pool().num_threads(),
                                    [&](std::int64_t) { run_fmas(wide, kRounds); });
      },
      seconds_a_case,
      cpu_time);
  const double flops = 2.0 * 12 * (wide ? 16 : 8) * kRounds * compute_pool().num_threads();
  return flops / times.best_s * 1e-9;
}
#else
double fma_limit() {
  return 0;
}
#endif

// GB/s of reading memory that no cache holds, over all threads.
double read_limit() {
  const std::int64_t size = std::int64_t{1} << 27;
  const auto data = at::ones({size}, at::kFloat);
  const auto* p = data.const_data_ptr<float>();
  volatile float sink = 0;
  const auto times = bench::measure(
      [&] {
        compute_pool().parallel_for(size >> 16, [&](std::int64_t task) {
          using V = float __attribute__((vector_size(32)));
          const auto* v = reinterpret_cast<const V*>(p + (task << 16));
          V a = {}, b = {}, c = {}, d = {};
          for (int i = 0; i < 8192; i += 4) {
            a += v[i];
            b += v[i + 1];
            c += v[i + 2];
            d += v[i + 3];
          }
          sink = (a + b + c + d)[0];
        });
      },
      seconds_a_case,
      cpu_time);
  return static_cast<double>(data.nbytes()) / times.best_s * 1e-9;
}

struct Limits {
  double gflops;
  double gbytes;
};

void report(const std::string& name,
            const Limits& limits,
            double gflop,
            double gbyte,
            const std::function<void()>& work) {
  if (name.find(filter) == std::string::npos) {
    return;
  }
  const auto t = bench::measure(work, seconds_a_case, cpu_time);
  fmt::print(
      "{{\"case\": \"{}\", \"us\": {:.1f}, \"median_us\": {:.1f}, \"gflops\": {:.1f}, "
      "\"fma_share\": {:.2f}, \"gbytes_per_s\": {:.1f}, \"read_share\": {:.2f}}}\n",
      name,
      t.best_s * 1e6,
      t.median_s * 1e6,
      gflop / t.best_s,
      gflop / t.best_s / limits.gflops,
      gbyte / t.best_s,
      gbyte / t.best_s / limits.gbytes);
  std::fflush(stdout);
}

struct Shape {
  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t outputs;
  std::int64_t slices;
};

void forward(const Shape& s, const Limits& limits, at::ScalarType type) {
  const auto x = at::randn({s.rows, s.inputs}).to(type);
  const kernels::Weight w{at::randn({s.outputs, s.inputs}).to(type), {}};
  const auto name = fmt::format("R={} K={} N={} slices={} {}",
                                s.rows,
                                s.inputs,
                                s.outputs,
                                s.slices,
                                type == at::kFloat ? "float32" : "bfloat16");
  const double gflop = 2e-9 * static_cast<double>(s.rows * s.inputs * s.outputs);
  const double gbyte = static_cast<double>(w.value.nbytes()) * 1e-9;
  report("linear " + name, limits, gflop, gbyte, [&] { kernels::linear(x, w, {}, s.slices); });
  report("at::linear " + name, limits, gflop, gbyte, [&] { at::linear(x, w.value); });
}

void backward(const Shape& s, const Limits& limits) {
  const auto x = at::randn({s.rows, s.inputs});
  const auto w = at::randn({s.outputs, s.inputs});
  const auto dy = at::randn({s.rows, s.outputs});
  const auto dx = at::zeros_like(x);
  const auto dw = at::zeros_like(w);
  const auto name = fmt::format("R={} K={} N={}", s.rows, s.inputs, s.outputs);
  const double gflop = 2e-9 * static_cast<double>(s.rows * s.inputs * s.outputs);
  report("dx " + name, limits, gflop, 0, [&] { kernels::add_input_gradient(dy, w, dx); });
  report("at dx " + name, limits, gflop, 0, [&] {
    at::addmm_out(const_cast<at::Tensor&>(dx), dx, dy, w);
  });
  report("dw " + name, limits, gflop, 0, [&] { kernels::add_weight_gradient(dy, x, dw); });
  report("at dw " + name, limits, gflop, 0, [&] {
    at::addmm_out(const_cast<at::Tensor&>(dw), dw, dy.t(), x);
  });
}

void run(int threads) {
  set_compute_threads(threads);
  at::set_num_threads(threads);
  const Limits limits = {fma_limit(), read_limit()};
  fmt::print(
      "{{\"isa\": \"{}\", \"threads\": {}, \"fma_gflops\": {:.1f}, \"read_gbytes\": {:.1f}}}\n",
      kernels::name_of(kernels::isa()),
      threads,
      limits.gflops,
      limits.gbytes);
  for (const std::int64_t rows : {1, 2, 4, 8, 32, 128, 512}) {
    for (const Shape& s : std::vector<Shape>{{rows, 576, 576, 1},
                                             {rows, 576, 960, 1},
                                             {rows, 576, 3072, 1},
                                             {rows, 1536, 576, 8},
                                             {rows, 1024, 3072, 1}}) {
      forward(s, limits, at::kFloat);
    }
    if (rows <= 128) {
      forward({rows, 576, 49152, 1}, limits, at::kFloat);
    }
    forward({rows, 576, 3072, 1}, limits, at::kBFloat16);
  }
  for (const std::int64_t rows : {128, 512, 2048}) {
    backward({rows, 576, 576, 1}, limits);
    backward({rows, 576, 3072, 1}, limits);
    backward({rows, 1536, 576, 1}, limits);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  if (argc > 2) {
    tandem::seconds_a_case = std::atof(argv[2]);
  }
  tandem::cpu_time = argc > 3 && std::string_view(argv[3]) == "cpu";
  tandem::filter = argc > 4 ? argv[4] : "";
  tandem::kernels::set_isa(argc > 5 ? argv[5] : "auto");
  tandem::run(argc > 1 ? std::atoi(argv[1]) : 2);
  return 0;
}
