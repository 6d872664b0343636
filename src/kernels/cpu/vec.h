// Sixteen float lanes, whatever the machine's registers: the compiler cuts them into what it has.
//
// Every kernel is written once, on these lanes, and compiled once for each instruction set
// (cpu/kernels.inc). A lane is computed alike everywhere (IEEE operations and fused multiply-add),
// so all instruction sets give the same bits. Include only from those sources: everything is in a
// namespace of its own for each, since inline functions compiled for AVX-512 must never be picked
// by the linker for a machine without it. No standard library templates here for the same reason.
#pragma once

#include <stdint.h>
#include <string.h>

#if defined(__FMA__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

#ifndef TANDEM_ISA
#error "cpu/vec.h is for the sources that define TANDEM_ISA"
#endif

namespace tandem::kernels::TANDEM_ISA {

constexpr int kLanes = 16;
using Vec = float __attribute__((vector_size(4 * kLanes)));
using IntVec = int32_t __attribute__((vector_size(4 * kLanes)));
using HalfVec = uint16_t __attribute__((vector_size(2 * kLanes)));

// bfloat16 as stored: the upper half of a float.
struct Bf16 {
  uint16_t bits;
};

inline Vec splat(float x) {
  return x - Vec{};
}

inline Vec load(const float* p) {
  Vec v;
  memcpy(&v, p, sizeof v);
  return v;
}

inline Vec load(const Bf16* p) {
  HalfVec half;
  memcpy(&half, p, sizeof half);
  const IntVec wide = __builtin_convertvector(half, IntVec) << 16;
  Vec v;
  memcpy(&v, &wide, sizeof v);
  return v;
}

inline void store(float* p, Vec v) {
  memcpy(p, &v, sizeof v);
}

// Rounds to nearest even; a NaN stays a (quiet) NaN.
inline void store(Bf16* p, Vec v) {
  IntVec bits;
  memcpy(&bits, &v, sizeof bits);
  const IntVec odd = (bits >> 16) & 1;
  IntVec rounded = (bits + 0x7fff + odd) >> 16;
  rounded = (v != v) ? ((bits >> 16) | 0x40) : rounded;
  const HalfVec half = __builtin_convertvector(rounded, HalfVec);
  memcpy(p, &half, sizeof half);
}

/// The first `n` lanes (0 to 16) from memory, zeros in the rest.
template <class T>
inline Vec load_some(const T* p, int n) {
  T buffer[kLanes] = {};
  memcpy(buffer, p, sizeof(T) * static_cast<size_t>(n));
  return load(buffer);
}

template <class T>
inline void store_some(T* p, Vec v, int n) {
  T buffer[kLanes];
  store(buffer, v);
  memcpy(p, buffer, sizeof(T) * static_cast<size_t>(n));
}

// a * b + c with one rounding: the instruction, or without hardware FMA the library's exact fmaf,
// slowly and with the same bits. These sources are compiled with -ffp-contract=off: elsewhere a
// product and a sum stay two roundings, or instruction sets would differ.
inline Vec fma(Vec a, Vec b, Vec c) {
#if defined(__AVX512F__)
  return (Vec)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
#elif defined(__FMA__)
  Vec r;
  for (int i = 0; i < 2; ++i) {
    __m256 x, y, z;
    memcpy(&x, reinterpret_cast<const char*>(&a) + 32 * i, sizeof x);
    memcpy(&y, reinterpret_cast<const char*>(&b) + 32 * i, sizeof y);
    memcpy(&z, reinterpret_cast<const char*>(&c) + 32 * i, sizeof z);
    z = _mm256_fmadd_ps(x, y, z);
    memcpy(reinterpret_cast<char*>(&r) + 32 * i, &z, sizeof z);
  }
  return r;
#else
  Vec r;
  for (int i = 0; i < kLanes; ++i) {
    r[i] = __builtin_fmaf(a[i], b[i], c[i]);
  }
  return r;
#endif
}

/// The sum of the lanes by one fixed tree: halves are added until one lane is left.
inline float sum_lanes(Vec v) {
  using Vec8 = float __attribute__((vector_size(32)));
  using Vec4 = float __attribute__((vector_size(16)));
  Vec8 lo8, hi8;
  memcpy(&lo8, &v, sizeof lo8);
  memcpy(&hi8, reinterpret_cast<const char*>(&v) + sizeof lo8, sizeof hi8);
  const Vec8 s8 = lo8 + hi8;
  Vec4 lo4, hi4;
  memcpy(&lo4, &s8, sizeof lo4);
  memcpy(&hi4, reinterpret_cast<const char*>(&s8) + sizeof lo4, sizeof hi4);
  const Vec4 s4 = lo4 + hi4;
  return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

}  // namespace tandem::kernels::TANDEM_ISA
