#include "model/gguf_types.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

namespace tandem::model {
namespace {

// What stands in a block, byte by byte: d scale, m minimum, q quants, h high bits of quants.

int byte_at(const std::byte* p, std::ptrdiff_t i) {
  return std::to_integer<int>(p[i]);
}

std::uint32_t uint16_at(const std::byte* p) {
  return static_cast<std::uint32_t>(byte_at(p, 0) | byte_at(p, 1) << 8);
}

std::uint32_t uint32_at(const std::byte* p) {
  return uint16_at(p) | uint16_at(p + 2) << 16;
}

float half_at(const std::byte* p) {
  const std::uint32_t bits = uint16_at(p);
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0) {  // zero or denormal: fraction * 2^-24, which is exact
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 0x1f ? 0xffu : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

void f32(const std::byte* block, float* out) {
  *out = std::bit_cast<float>(uint32_at(block));
}

void f16(const std::byte* block, float* out) {
  *out = half_at(block);
}

void bf16(const std::byte* block, float* out) {
  *out = std::bit_cast<float>(uint16_at(block) << 16);
}

void q8_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 32; ++j) {
    out[j] = d * static_cast<float>(static_cast<std::int8_t>(byte_at(block, 2 + j)));
  }
}

// Quants of 4 bits: the low halves of 16 bytes are the first 16 values, the high ones the rest.
void q4_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int j = 0; j < 16; ++j) {
    const int q = byte_at(block, 2 + j);
    out[j] = d * static_cast<float>((q & 15) - 8);
    out[j + 16] = d * static_cast<float>((q >> 4) - 8);
  }
}

void q4_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  for (int j = 0; j < 16; ++j) {
    const int q = byte_at(block, 4 + j);
    out[j] = d * static_cast<float>(q & 15) + m;
    out[j + 16] = d * static_cast<float>(q >> 4) + m;
  }
}

// Quants of 5 bits: the fifth ones of all 32 values are the bits of h.
int fifth_bit(std::uint32_t h, int j) {
  return static_cast<int>(h >> j & 1u) << 4;
}

void q5_0(const std::byte* block, float* out) {
  const float d = half_at(block);
  const std::uint32_t h = uint32_at(block + 2);
  for (int j = 0; j < 16; ++j) {
    const int q = byte_at(block, 6 + j);
    out[j] = d * static_cast<float>(((q & 15) | fifth_bit(h, j)) - 16);
    out[j + 16] = d * static_cast<float>(((q >> 4) | fifth_bit(h, j + 16)) - 16);
  }
}

void q5_1(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float m = half_at(block + 2);
  const std::uint32_t h = uint32_at(block + 4);
  for (int j = 0; j < 16; ++j) {
    const int q = byte_at(block, 8 + j);
    out[j] = d * static_cast<float>((q & 15) | fifth_bit(h, j)) + m;
    out[j + 16] = d * static_cast<float>((q >> 4) | fifth_bit(h, j + 16)) + m;
  }
}

struct ScaleAndMin {
  int scale;
  int minimum;
};

// 8 pairs of 6 bits in 12 bytes: the first four lie plainly in the low bits, the others are put
// together from half a byte and the two top bits of an earlier one.
ScaleAndMin q4_k_pair(const std::byte* s, int j) {
  if (j < 4) {
    return {byte_at(s, j) & 63, byte_at(s, j + 4) & 63};
  }
  return {(byte_at(s, j + 4) & 15) | byte_at(s, j - 4) >> 6 << 4,
          byte_at(s, j + 4) >> 4 | byte_at(s, j) >> 6 << 4};
}

void q4_k(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float d_min = half_at(block + 2);
  const std::byte* scales = block + 4;
  const std::byte* quants = block + 16;
  for (int sub = 0; sub < 8; ++sub) {
    const auto [scale, minimum] = q4_k_pair(scales, sub);
    const float sub_d = d * static_cast<float>(scale);
    const float sub_m = d_min * static_cast<float>(minimum);
    for (int j = 0; j < 32; ++j) {
      const int q = byte_at(quants, sub / 2 * 32 + j) >> (sub % 2 * 4) & 15;
      out[sub * 32 + j] = sub_d * static_cast<float>(q) - sub_m;
    }
  }
}

void q6_k(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int half = 0; half < 2; ++half) {
    const std::byte* low = block + half * 64;
    const std::byte* high = block + 128 + half * 32;
    const std::byte* scales = block + 192 + half * 8;
    for (int quarter = 0; quarter < 4; ++quarter) {
      for (int j = 0; j < 32; ++j) {
        const int four = byte_at(low, quarter % 2 * 32 + j) >> (quarter / 2 * 4) & 15;
        const int two = byte_at(high, j) >> (quarter * 2) & 3;
        const int scale = static_cast<std::int8_t>(byte_at(scales, quarter * 2 + j / 16));
        out[half * 128 + quarter * 32 + j] =
            d * static_cast<float>(scale) * static_cast<float>((four | two << 4) - 32);
      }
    }
  }
}

constexpr std::array kTypes = {
    GgufType{0, "F32", 1, 4, f32},
    GgufType{1, "F16", 1, 2, f16},
    GgufType{30, "BF16", 1, 2, bf16},
    GgufType{8, "Q8_0", 32, 34, q8_0},
    GgufType{2, "Q4_0", 32, 18, q4_0},
    GgufType{3, "Q4_1", 32, 20, q4_1},
    GgufType{6, "Q5_0", 32, 22, q5_0},
    GgufType{7, "Q5_1", 32, 24, q5_1},
    GgufType{12, "Q4_K", 256, 144, q4_k},
    GgufType{14, "Q6_K", 256, 210, q6_k},
};

}  // namespace

std::span<const GgufType> gguf_types() {
  return kTypes;
}

const GgufType* find_gguf_type(std::uint32_t id) {
  const auto found = std::find_if(
      kTypes.begin(), kTypes.end(), [&](const GgufType& type) { return type.id == id; });
  return found == kTypes.end() ? nullptr : &*found;
}

std::string supported_gguf_types() {
  std::string text;
  for (const GgufType& type : kTypes) {
    text += (text.empty() ? "" : ", ") + std::string(type.name);
  }
  return text;
}

}  // namespace tandem::model
