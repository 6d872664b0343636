// Numbers known to the compiler out of numbers that are not.
#pragma once

#include <stdint.h>

#ifndef TANDEM_ISA
#error "cpu/constant.h is for the sources that define TANDEM_ISA"
#endif

namespace tandem::kernels::TANDEM_ISA {

template <int N>
struct Constant {
  static constexpr int value = N;
};

// `f(Constant<N>)` with N = n, from 1 to kMost.
template <int kMost, class F>
[[gnu::always_inline]] inline void with_constant(int64_t n, F f) {
  if (n == kMost) {
    f(Constant<kMost>());
  } else if constexpr (kMost > 1) {
    with_constant<kMost - 1>(n, f);
  }
}

}  // namespace tandem::kernels::TANDEM_ISA
