#include "app/bench/bench_case.h"
#include "kernels/isa.h"

namespace tandem::app {
namespace {

// The limit of the arithmetic that matrix products use.
double product_limit(const Session& session, const MachineLimits& limits) {
  const bool in_pairs = session.weights->dtype() == at::kBFloat16 &&
                        kernels::arithmetic() == kernels::Arithmetic::kDotBf16;
  return in_pairs ? limits.bf16_dot_gflops : limits.fma_gflops;
}

}  // namespace

WorkCounter counter_of(const Session& session) {
  return {session.decoder->config(), session.weights->dtype()};
}

double tokens_per_second(std::int64_t tokens, double seconds) {
  return seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
}

void add_roofline(const Session& session, const MachineLimits& limits, BenchResult& result) {
  const double product_gflops = product_limit(session, limits);
  auto& figures = result.figures;
  figures["fma_limit_gflops"] = limits.fma_gflops;
  figures["bf16_dot_limit_gflops"] = limits.bf16_dot_gflops;
  figures["product_limit_gflops"] = product_gflops;
  figures["dram_gb_per_s"] = limits.dram_gb_per_s;
  for (const auto& [name, part] : result.parts) {
    if (part.seconds <= 0) {
      continue;
    }
    const double least = least_seconds(part.work, product_gflops, limits);
    const Stage total = total_of(part.work);
    const double gflops = (total.product_flops + total.attention_flops) / part.seconds / 1e9;
    figures["roofline_s/" + name] = least;
    figures["roofline_share/" + name] = least / part.seconds;
    figures["gflops/" + name] = gflops;
    figures["share_of_fma_limit/" + name] = gflops / limits.fma_gflops;
    figures["share_of_dram/" + name] = total.bytes / part.seconds / 1e9 / limits.dram_gb_per_s;
  }
}

}  // namespace tandem::app
