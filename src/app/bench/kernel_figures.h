// Times kernels and adds their figures to the result of `bench kernels`.
#pragma once

#include <functional>
#include <string>

#include "app/bench/bench_case.h"

namespace tandem::app {

class KernelFigures {
 public:
  struct Ceilings {
    double gflops = 0;  // of the products' arithmetic, on registers alone
    double fma_gflops = 0;
    double dram_gb_per_s = 0;
  };

  /// `result` must outlive this.
  KernelFigures(BenchResult& result, const Ceilings& ceilings)
      : result_(result), ceilings_(ceilings) {}

  /// A product: `gflops/NAME` and `share_of_limit/NAME`. Returns the seconds of a call.
  double add_product(const std::string& name, double flops, const std::function<void()>& call);

  /// Other arithmetic, which is in float32: the same two, with the share of the FMA limit.
  void add_flops(const std::string& name, double flops, const std::function<void()>& call);

  /// What memory binds: `gb_per_s/NAME` and `share_of_dram/NAME`, of the bytes read and written.
  void add_bytes(const std::string& name, double bytes, const std::function<void()>& call);

  /// The same for a call that took `seconds`.
  void add_rate(const std::string& name, double bytes, double seconds);

 private:
  BenchResult& result_;  // not owned
  Ceilings ceilings_;
};

/// Everything but the products: attention, what goes over rows, the vocabulary, AdamW.
void bench_row_kernels(const Session& session, KernelFigures& figures);

}  // namespace tandem::app
