// Times of the kernels between the products, and of the smallest calls: what a call costs.
//   elementwise_bench [THREADS [SECONDS_A_CASE [wall|cpu]]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/elementwise.h"
#include "kernels/heads.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "support/bench.h"

namespace tandem {
namespace {

double seconds_a_case = 0.1;
bool cpu_time = false;

void report(const std::string& name, std::int64_t bytes, const std::function<void()>& work) {
  const auto t = bench::measure(work, seconds_a_case, cpu_time);
  fmt::print(
      "{{\"case\": \"{}\", \"us\": {:.2f}, \"median_us\": {:.2f}, \"gbytes_per_s\": {:.1f}}}\n",
      name,
      t.best_s * 1e6,
      t.median_s * 1e6,
      static_cast<double>(bytes) / t.best_s * 1e-9);
  std::fflush(stdout);
}

void run(std::int64_t rows) {
  const std::int64_t width = 576;
  const std::int64_t hidden = 1536;
  const auto x = at::randn({rows, width});
  const auto gates = at::randn({rows, 2 * hidden});
  const auto heads = x.view({rows, 9, 64});
  const kernels::Weight scale{at::ones({width}), {}};
  const kernels::Weight table{at::randn({512, width}), {}};
  const kernels::Weight small{at::randn({16, width}), {}};
  const auto ids = at::randint(512, {rows}, at::kInt);
  const auto positions = at::randint(256, {rows}, at::kInt);
  const auto angle = at::randn({256, 32});
  const kernels::RotaryTable angles{at::cos(angle), at::sin(angle)};
  const auto x_bytes = static_cast<std::int64_t>(x.nbytes());
  const auto gate_bytes = static_cast<std::int64_t>(gates.nbytes());
  const auto name = [&](const char* kernel) { return fmt::format("{} R={}", kernel, rows); };
  report(name("rms_norm 576"), 2 * x_bytes, [&] { kernels::rms_norm(x, scale, 1e-5); });
  report(name("rotary 9x64"), 2 * x_bytes, [&] { kernels::rotary(heads, positions, angles); });
  report(name("gated_silu 1536"), gate_bytes * 3 / 2, [&] { kernels::gated_silu(gates); });
  report(name("add 576"), 3 * x_bytes, [&] { kernels::add(x, x); });
  report(name("embedding 576"), 2 * x_bytes, [&] { kernels::embedding(ids, table); });
  report(name("linear 576 to 16"), x_bytes, [&] { kernels::linear(x, small); });
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  if (argc > 2) {
    tandem::seconds_a_case = std::atof(argv[2]);
  }
  tandem::cpu_time = argc > 3 && std::string_view(argv[3]) == "cpu";
  tandem::set_compute_threads(argc > 1 ? std::atoi(argv[1]) : 2);
  for (const std::int64_t rows : {1, 16, 512}) {
    tandem::run(rows);
  }
  return 0;
}
