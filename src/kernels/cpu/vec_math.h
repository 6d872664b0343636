// The exponential on lanes, with the same bits on every instruction set.
#pragma once

#include "kernels/cpu/vec.h"

namespace tandem::kernels::TANDEM_ISA {

/// e^x, off by less than one unit in the last place. 0 for -inf, inf for large x, NaN for NaN;
/// small results are denormal.
///
/// x = n ln 2 + r with integer n and |r| <= ln(2) / 2; e^r is 1 + r + r^2 q(r), where q
/// interpolates (e^r - 1 - r) / r^2 at Chebyshev nodes (relative error 7e-10).
[[gnu::always_inline]] inline Vec exp(Vec x) {
  const Vec clamped = max(min(x, splat(89.0f)), splat(-105.0f));  // beyond: inf, 0
  const Vec shifter = splat(0x1.8p23f);                           // rounds to an integer
  const Vec shifted = fma(clamped, splat(0x1.715476p0f), shifter);
  const Vec n = shifted - shifter;
  const Vec r = fma(n, splat(-1.428606765330187e-06f), fma(n, splat(-0.693145751953125f), clamped));
  Vec q = splat(0.000198909911f);
  q = fma(q, r, splat(0.00139336498f));
  q = fma(q, r, splat(0.00833331048f));
  q = fma(q, r, splat(0.0416664667f));
  q = fma(q, r, splat(0.166666672f));
  q = fma(q, r, splat(0.5f));
  const Vec power = fma(q, r * r, r) + splat(1.0f);
  // 2^n in two factors: n reaches from -151 to 128, past the exponents of normal floats.
  const IntVec whole = float_to_bits(shifted) - splat_int(0x4b400000);
  const IntVec half = shift_right(whole, 1);
  const Vec factor1 = bits_to_float(shift_left(half + splat_int(127), 23));
  const Vec factor2 = bits_to_float(shift_left(whole - half + splat_int(127), 23));
  return select(is_nan(x), x, power * factor1 * factor2);
}

}  // namespace tandem::kernels::TANDEM_ISA
