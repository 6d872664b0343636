// What the machine can do at best: the ceilings that rooflines are made of.
#pragma once

namespace tandem::app {

/// Over all compute threads.
struct MachineLimits {
  double fma_gflops = 0;       // fp32 multiply-adds on registers, in the kernels' instruction set
  double bf16_dot_gflops = 0;  // bf16 dot products on registers; 0 where the machine has none
  double dram_gb_per_s = 0;    // reading memory that no cache holds
};

/// Measures them; takes half a second, and half a gigabyte for as long.
MachineLimits measure_machine_limits();

/// Multiply-adds on registers alone.
double fma_limit_gflops();

/// Dot products of bf16 pairs on registers alone (vdpbf16ps).
double bf16_dot_limit_gflops();

double dram_read_gb_per_s();

}  // namespace tandem::app
