#include "rollout/vocab_math.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tandem::rollout {
namespace {

constexpr std::int64_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool is_empty(const LogSumExp& part) {
  return part.max == -kInfinity;
}

// Sixteen running sums over the chunk, then halved four times: a tree that n alone determines.
LogSumExp reduce_chunk(const float* logits, std::int64_t n, float inverse_temperature) {
  LogSumExp chunk{-kInfinity, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    chunk.max = std::max(chunk.max, logits[i] * inverse_temperature);
  }
  if (is_empty(chunk)) {
    return chunk;
  }
  std::array<float, kLanes> sums{};
  for (std::int64_t i = 0; i < n; ++i) {
    const float scaled = logits[i] * inverse_temperature;
    sums[i % kLanes] += std::exp(scaled - chunk.max);
  }
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) {
      sums[lane] += sums[lane + width];
    }
  }
  chunk.sum = sums[0];
  return chunk;
}

LogSumExp merge(const LogSumExp& left, const LogSumExp& right) {
  if (is_empty(left)) {
    return right;
  }
  if (is_empty(right)) {
    return left;
  }
  const float max = std::max(left.max, right.max);
  const float left_part = left.sum * std::exp(left.max - max);
  const float right_part = right.sum * std::exp(right.max - max);
  return {max, left_part + right_part};
}

LogSumExp reduce(const float* logits,
                 std::int64_t n,
                 float inverse_temperature,
                 std::vector<LogSumExp>* chunks) {
  if (chunks != nullptr) {
    chunks->clear();
  }
  LogSumExp row{-kInfinity, 0};
  for (std::int64_t begin = 0; begin < n; begin += kVocabChunk) {
    const std::int64_t size = std::min(kVocabChunk, n - begin);
    const LogSumExp chunk = reduce_chunk(logits + begin, size, inverse_temperature);
    row = merge(row, chunk);
    if (chunks != nullptr) {
      chunks->push_back(chunk);
    }
  }
  return row;
}

void exp_shifted(
    const float* logits, std::int64_t n, float inverse_temperature, float max, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float scaled = logits[i] * inverse_temperature;
    out[i] = std::exp(scaled - max);
  }
}

}  // namespace

VocabMath portable_vocab_math() {
  return {&reduce, &exp_shifted};
}

}  // namespace tandem::rollout
