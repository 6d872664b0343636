// Sixteen float lanes, whatever the machine's registers: one part with AVX-512, two with AVX2, four
// without either.
//
// Every kernel is written once, on these lanes, and compiled once for each instruction set
// (cpu/kernels.inc). A lane is computed alike everywhere: IEEE operations, and a fused multiply-add
// exactly where the source says fma (those sources are built with -ffp-contract=off). So all
// instruction sets give the same bits. Include only from those sources: everything is in a
// namespace of its own for each, since inline functions compiled for AVX-512 must never be picked
// by the linker for a machine without it. No standard library templates here for the same reason.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__AVX512F__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernels/cpu/bf16.h"

#ifndef TANDEM_ISA
#error "cpu/vec.h is for the sources that define TANDEM_ISA"
#endif

namespace tandem::kernels::TANDEM_ISA {

constexpr int kLanes = 16;
#if defined(__AVX512F__)
constexpr int kPartLanes = 16;
#elif defined(__AVX2__)
constexpr int kPartLanes = 8;
#else
constexpr int kPartLanes = 4;
#endif
constexpr int kParts = kLanes / kPartLanes;

using Part = float __attribute__((vector_size(4 * kPartLanes)));
using IntPart = int32_t __attribute__((vector_size(4 * kPartLanes)));
using HalfPart = uint16_t __attribute__((vector_size(2 * kPartLanes)));
using Quad = float __attribute__((vector_size(16)));

// Structs of parts rather than one wide vector: GCC keeps a vector wider than the registers in
// memory.
struct Vec {
  Part part[kParts];
};

/// Lanes of 32-bit integers; as a mask, a lane is 0 or -1.
struct IntVec {
  IntPart part[kParts];
};

// Applies `f` to the parts of its arguments.
template <class Result, class F, class... V>
[[gnu::always_inline]] inline Result each_part(F f, const V&... v) {
  Result r;
  for (int i = 0; i < kParts; ++i) {
    r.part[i] = f(v.part[i]...);
  }
  return r;
}

[[gnu::always_inline]] inline Vec splat(float x) {
  Vec v;
  for (int i = 0; i < kParts; ++i) {
    v.part[i] = x - Part{};
  }
  return v;
}

[[gnu::always_inline]] inline IntVec splat_int(int32_t x) {
  IntVec v;
  for (int i = 0; i < kParts; ++i) {
    v.part[i] = x - IntPart{};
  }
  return v;
}

[[gnu::always_inline]] inline Vec operator+(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x + y; }, a, b);
}
[[gnu::always_inline]] inline Vec operator-(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x - y; }, a, b);
}
[[gnu::always_inline]] inline Vec operator*(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x * y; }, a, b);
}
[[gnu::always_inline]] inline Vec operator/(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x / y; }, a, b);
}
[[gnu::always_inline]] inline Vec operator-(Vec a) {
  return each_part<Vec>([](Part x) { return -x; }, a);
}
[[gnu::always_inline]] inline IntVec operator+(IntVec a, IntVec b) {
  return each_part<IntVec>([](IntPart x, IntPart y) { return x + y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator-(IntVec a, IntVec b) {
  return each_part<IntVec>([](IntPart x, IntPart y) { return x - y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator&(IntVec a, IntVec b) {
  return each_part<IntVec>([](IntPart x, IntPart y) { return x & y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator|(IntVec a, IntVec b) {
  return each_part<IntVec>([](IntPart x, IntPart y) { return x | y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator<(IntVec a, IntVec b) {
  return each_part<IntVec>([](IntPart x, IntPart y) -> IntPart { return x < y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator<(Vec a, Vec b) {
  return each_part<IntVec>([](Part x, Part y) -> IntPart { return x < y; }, a, b);
}
[[gnu::always_inline]] inline IntVec operator==(Vec a, Vec b) {
  return each_part<IntVec>([](Part x, Part y) -> IntPart { return x == y; }, a, b);
}
[[gnu::always_inline]] inline IntVec is_nan(Vec a) {
  return each_part<IntVec>([](Part x) -> IntPart { return x != x; }, a);
}

/// Lane by lane `mask ? a : b`.
[[gnu::always_inline]] inline Vec select(IntVec mask, Vec a, Vec b) {
  return each_part<Vec>([](IntPart m, Part x, Part y) { return m ? x : y; }, mask, a, b);
}

/// The larger of two lanes; `b` where either is a NaN.
[[gnu::always_inline]] inline Vec max(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x > y ? x : y; }, a, b);
}
/// The smaller of two lanes; `b` where either is a NaN.
[[gnu::always_inline]] inline Vec min(Vec a, Vec b) {
  return each_part<Vec>([](Part x, Part y) { return x < y ? x : y; }, a, b);
}

[[gnu::always_inline]] inline Vec bits_to_float(IntVec v) {
  return each_part<Vec>([](IntPart x) { return reinterpret_cast<Part>(x); }, v);
}
[[gnu::always_inline]] inline IntVec float_to_bits(Vec v) {
  return each_part<IntVec>([](Part x) { return reinterpret_cast<IntPart>(x); }, v);
}
[[gnu::always_inline]] inline IntVec shift_left(IntVec v, int bits) {
  return each_part<IntVec>([bits](IntPart x) { return x << bits; }, v);
}
/// Shifts right, copies of the sign coming in.
[[gnu::always_inline]] inline IntVec shift_right(IntVec v, int bits) {
  return each_part<IntVec>([bits](IntPart x) { return x >> bits; }, v);
}

// a * b + c with one rounding.
[[gnu::always_inline]] inline Part fma_part(Part a, Part b, Part c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__FP_FAST_FMAF)
  Part r;
  for (int i = 0; i < kPartLanes; ++i) {
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  }
  return r;
#else
  // In double the product is exact, and the sum is rounded to odd (Boldo and Melquiond, "Emulation
  // of FMA and correctly rounded sums", 2008), so that rounding it once more gives the exact
  // operation's result.
  using Wide = double __attribute__((vector_size(8 * kPartLanes)));
  using Bits = int64_t __attribute__((vector_size(8 * kPartLanes)));
  const Wide product = __builtin_convertvector(a, Wide) * __builtin_convertvector(b, Wide);
  const Wide term = __builtin_convertvector(c, Wide);
  const Wide sum = product + term;
  const Wide back = sum - product;
  const Wide error = (product - (sum - back)) + (term - back);
  const Bits bits = reinterpret_cast<Bits>(sum);
  const Bits outward = (sum < 0) == (error < 0);  // the exact sum is further from zero
  const Bits inexact = (error < 0) | (error > 0);
  const Bits step = (outward & 2) - 1;  // 1 or -1
  const Bits odd = bits + (step & inexact & ((bits & 1) - 1));
  return __builtin_convertvector(reinterpret_cast<Wide>(odd), Part);
#endif
}

/// a * b + c with one rounding.
[[gnu::always_inline]] inline Vec fma(Vec a, Vec b, Vec c) {
  return each_part<Vec>([](Part x, Part y, Part z) { return fma_part(x, y, z); }, a, b, c);
}

/// Lane i (0 to 15).
[[gnu::always_inline]] inline float lane(Vec v, int i) {
  return v.part[i / kPartLanes][i % kPartLanes];
}

}  // namespace tandem::kernels::TANDEM_ISA
