// Lanes as four quads of 16 bytes: the layout of the products, in which a quad belongs to one
// output and its four lanes to neighbouring inputs.
#pragma once

#include "kernels/cpu/vec_memory.h"

namespace tandem::kernels::TANDEM_ISA {

constexpr int kPartQuads = kPartLanes / 4;

/// Elements of a quad.
template <class T>
constexpr int64_t kQuad = 16 / sizeof(T);

/// The 16 bytes at `p`.
template <class T>
[[gnu::always_inline]] inline Quad load_quad(const T* p) {
  Quad quad;
  memcpy(&quad, p, sizeof quad);
  return quad;
}

/// The 16 bytes at `p`, in every quad.
template <class T>
[[gnu::always_inline]] inline Part spread_quad(const T* p) {
#if defined(__AVX512F__)
  return _mm512_broadcast_f32x4(_mm_loadu_ps(reinterpret_cast<const float*>(p)));
#elif defined(__AVX2__)
  return _mm256_broadcast_ps(reinterpret_cast<const __m128*>(p));
#else
  Part part;
  memcpy(&part, p, sizeof part);
  return part;
#endif
}

// The quads at at(0), at(1), ...
template <class At>
[[gnu::always_inline]] inline Part gather_quads_at(At at) {
#if defined(__AVX512F__)
  const __m256 low = _mm256_insertf128_ps(_mm256_castps128_ps256(at(0)), at(1), 1);
  const __m256 high = _mm256_insertf128_ps(_mm256_castps128_ps256(at(2)), at(3), 1);
  return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
#elif defined(__AVX2__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(at(0)), at(1), 1);
#else
  return at(0);
#endif
}

/// Quads of 16 bytes that stand `stride` elements apart.
template <class T>
[[gnu::always_inline]] inline Part gather_quads(const T* p, int64_t stride) {
  return gather_quads_at([&](int i) { return load_quad(p + i * stride); });
}

/// The 16 bytes at element `d` of every fourth of `rows`.
template <class T>
[[gnu::always_inline]] inline Part gather_quads(const T* const* rows, int64_t d) {
  return gather_quads_at([&](int i) { return load_quad(rows[4 * i] + d); });
}

/// Of each quad's eight bfloat16, the lower (0) or upper (1) four as floats.
template <int kHalf>
[[gnu::always_inline]] inline Part widen_half(Part quads) {
#if defined(__AVX512F__)
  const __m512i bits = _mm512_castps_si512(quads);
  const __m512i zero = _mm512_setzero_si512();
  return _mm512_castsi512_ps(kHalf == 0 ? _mm512_unpacklo_epi16(zero, bits)
                                        : _mm512_unpackhi_epi16(zero, bits));
#elif defined(__AVX2__)
  const __m256i bits = _mm256_castps_si256(quads);
  const __m256i zero = _mm256_setzero_si256();
  return _mm256_castsi256_ps(kHalf == 0 ? _mm256_unpacklo_epi16(zero, bits)
                                        : _mm256_unpackhi_epi16(zero, bits));
#else
  uint16_t all[8];
  memcpy(all, &quads, sizeof all);
  IntPart wide;
  for (int i = 0; i < 4; ++i) {
    wide[i] = static_cast<int32_t>(static_cast<uint32_t>(all[4 * kHalf + i]) << 16);
  }
  return reinterpret_cast<Part>(wide);
#endif
}

/// Sums of the quads by one fixed tree, (0 + 2) + (1 + 3): lane 4 i + j is that of quad i of the
/// j-th vector.
[[gnu::always_inline]] inline Vec sum_quads(Vec a, Vec b, Vec c, Vec d) {
  return each_part<Vec>(
      [](Part w, Part x, Part y, Part z) {
        // [0 + 2, 1 + 3] of one vector beside those of the next.
        const auto fold = [](Part p, Part q) {
#if defined(__AVX512F__)
          return _mm512_mask_blend_ps(0xcccc, p, q) + _mm512_shuffle_ps(p, q, 0x4e);
#elif defined(__AVX2__)
          return _mm256_blend_ps(p, q, 0xcc) + _mm256_shuffle_ps(p, q, 0x4e);
#else
          return __builtin_shufflevector(p, q, 0, 1, 6, 7) +
                 __builtin_shufflevector(p, q, 2, 3, 4, 5);
#endif
        };
        const Part wx = fold(w, x);
        const Part yz = fold(y, z);
#if defined(__AVX512F__)
        return _mm512_shuffle_ps(wx, yz, 0x88) + _mm512_shuffle_ps(wx, yz, 0xdd);
#elif defined(__AVX2__)
        return _mm256_shuffle_ps(wx, yz, 0x88) + _mm256_shuffle_ps(wx, yz, 0xdd);
#else
        return __builtin_shufflevector(wx, yz, 0, 2, 4, 6) +
               __builtin_shufflevector(wx, yz, 1, 3, 5, 7);
#endif
      },
      a,
      b,
      c,
      d);
}

}  // namespace tandem::kernels::TANDEM_ISA
