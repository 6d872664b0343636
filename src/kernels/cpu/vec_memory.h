// Lanes to and from memory, and sums over lanes.
#pragma once

#include "kernels/cpu/vec.h"

namespace tandem::kernels::TANDEM_ISA {

/// One part, kPartLanes elements.
[[gnu::always_inline]] inline Part load_part(const float* p) {
  Part part;
  memcpy(&part, p, sizeof part);
  return part;
}

[[gnu::always_inline]] inline Part load_part(const Bf16* p) {
  HalfPart half;
  memcpy(&half, p, sizeof half);
#if defined(__AVX512F__)
  const auto wide =
      reinterpret_cast<IntPart>(_mm512_cvtepu16_epi32(reinterpret_cast<__m256i>(half)));
#elif defined(__AVX2__)
  const auto wide =
      reinterpret_cast<IntPart>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(half)));
#else
  const IntPart wide = __builtin_convertvector(half, IntPart);
#endif
  return reinterpret_cast<Part>(wide << 16);
}

template <class T>
[[gnu::always_inline]] inline Vec load(const T* p) {
  Vec v;
  for (int i = 0; i < kParts; ++i) {
    v.part[i] = load_part(p + i * kPartLanes);
  }
  return v;
}

[[gnu::always_inline]] inline void store(float* p, Vec v) {
  for (int i = 0; i < kParts; ++i) {
    memcpy(p + i * kPartLanes, &v.part[i], sizeof(Part));
  }
}

/// The bfloat16 nearest to each lane, ties to even, as the upper halves of floats. A NaN stays one.
[[gnu::always_inline]] inline Vec round_to_bf16(Vec v) {
  const IntVec bits = float_to_bits(v);
  const IntVec odd = shift_right(bits, 16) & splat_int(1);
  const IntVec rounded = (bits + splat_int(0x7fff) + odd) & splat_int(-0x10000);
  return select(is_nan(v), bits_to_float(bits | splat_int(0x400000)), bits_to_float(rounded));
}

[[gnu::always_inline]] inline void store(Bf16* p, Vec v) {
  const IntVec upper = shift_right(float_to_bits(round_to_bf16(v)), 16);
  for (int i = 0; i < kParts; ++i) {
    const HalfPart half = __builtin_convertvector(upper.part[i], HalfPart);
    memcpy(p + i * kPartLanes, &half, sizeof half);
  }
}

/// The first `n` lanes (0 to 16) from memory, zeros in the rest.
template <class T>
[[gnu::always_inline]] inline Vec load_some(const T* p, int n) {
  if (n == kLanes) {
    return load(p);
  }
  T buffer[kLanes] = {};
  memcpy(buffer, p, sizeof(T) * static_cast<size_t>(n));
  return load(buffer);
}

#if defined(__AVX512F__)
template <>
[[gnu::always_inline]] inline Vec load_some(const float* p, int n) {
  Vec v;
  v.part[0] = _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << n) - 1), p);
  return v;
}
#endif

/// Stores the first `n` lanes (0 to 16).
template <class T>
[[gnu::always_inline]] inline void store_some(T* p, Vec v, int n) {
  if (n == kLanes) {
    store(p, v);
    return;
  }
  T buffer[kLanes];
  store(buffer, v);
  memcpy(p, buffer, sizeof(T) * static_cast<size_t>(n));
}

#if defined(__AVX512F__)
template <>
[[gnu::always_inline]] inline void store_some(float* p, Vec v, int n) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << n) - 1), v.part[0]);
}
#endif

/// `v` rounded as storing it as T would.
template <class T>
[[gnu::always_inline]] inline Vec round_to(Vec v);
template <>
[[gnu::always_inline]] inline Vec round_to<float>(Vec v) {
  return v;
}
template <>
[[gnu::always_inline]] inline Vec round_to<Bf16>(Vec v) {
  return round_to_bf16(v);
}

// Lanes i + 4 and i + 8, i + 12 added to lane i: the first two steps of the tree below.
[[gnu::always_inline]] inline Quad fold_to_quad(Vec v) {
#if defined(__AVX512F__)
  const __m256 s8 = _mm512_castps512_ps256(v.part[0]) + _mm512_extractf32x8_ps(v.part[0], 1);
  return _mm256_castps256_ps128(s8) + _mm256_extractf128_ps(s8, 1);
#elif defined(__AVX2__)
  const __m256 s8 = v.part[0] + v.part[1];
  return _mm256_castps256_ps128(s8) + _mm256_extractf128_ps(s8, 1);
#else
  return (v.part[0] + v.part[2]) + (v.part[1] + v.part[3]);
#endif
}

/// The sum of the lanes by one fixed tree: halves are added until one lane is left.
[[gnu::always_inline]] inline float sum_lanes(Vec v) {
  const Quad s4 = fold_to_quad(v);
  return (s4[0] + s4[2]) + (s4[1] + s4[3]);
}

/// sum_lanes of four vectors at once.
[[gnu::always_inline]] inline Quad sum_lanes(Vec a, Vec b, Vec c, Vec d) {
  const Quad a4 = fold_to_quad(a);
  const Quad b4 = fold_to_quad(b);
  const Quad c4 = fold_to_quad(c);
  const Quad d4 = fold_to_quad(d);
  const Quad ab =
      __builtin_shufflevector(a4, b4, 0, 1, 4, 5) + __builtin_shufflevector(a4, b4, 2, 3, 6, 7);
  const Quad cd =
      __builtin_shufflevector(c4, d4, 0, 1, 4, 5) + __builtin_shufflevector(c4, d4, 2, 3, 6, 7);
  return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

/// The largest lane, by one fixed tree; which one where a lane is NaN is not defined.
[[gnu::always_inline]] inline float max_lane(Vec v) {
  const auto larger = [](auto a, auto b) { return a > b ? a : b; };
#if defined(__AVX512F__)
  const __m256 m8 = larger(_mm512_castps512_ps256(v.part[0]), _mm512_extractf32x8_ps(v.part[0], 1));
  const Quad m4 = larger(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
#elif defined(__AVX2__)
  const __m256 m8 = larger(v.part[0], v.part[1]);
  const Quad m4 = larger(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
#else
  const Quad m4 = larger(larger(v.part[0], v.part[2]), larger(v.part[1], v.part[3]));
#endif
  return larger(larger(float{m4[0]}, float{m4[2]}), larger(float{m4[1]}, float{m4[3]}));
}

}  // namespace tandem::kernels::TANDEM_ISA
