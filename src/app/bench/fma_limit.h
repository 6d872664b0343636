// What the machine's multiply-add units reach on registers alone: the ceiling of every product.
#pragma once

namespace tandem::app {

/// GFLOP/s over all compute threads, in the instruction set that the kernels use.
double fma_limit_gflops();

}  // namespace tandem::app
