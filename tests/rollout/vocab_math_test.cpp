#include "rollout/vocab_math.h"

#include <cmath>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include "base/counter_rng.h"

namespace tandem::rollout {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> random_logits(std::int64_t n) {
  std::vector<float> logits(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < logits.size(); ++i) {
    logits[i] = static_cast<float>(3 * random_normal({.position = static_cast<std::uint32_t>(i)}));
  }
  return logits;
}

TEST_CASE("the reduction agrees with float64 for any size and temperature") {
  const VocabMath math = portable_vocab_math();
  for (const std::int64_t n : {1, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    for (const float factor : {0.5F, 1.0F, 1.4F}) {
      const auto logits = random_logits(n);
      double sum = 0;
      for (const float logit : logits) {
        sum += std::exp(static_cast<double>(logit) * factor);
      }
      const LogSumExp over = math.reduce(logits.data(), n, factor, nullptr);
      CAPTURE(n);
      CHECK(over.max + std::log(over.sum) == doctest::Approx(std::log(sum)).epsilon(1e-6));
    }
  }
}

TEST_CASE(
    "chunks are merged left to right: a row in two halves at a chunk's end has the same bits") {
  const VocabMath math = portable_vocab_math();
  const auto logits = random_logits(2 * kVocabChunk);
  const LogSumExp left = math.reduce(logits.data(), kVocabChunk, 1.0F, nullptr);
  const LogSumExp right = math.reduce(logits.data() + kVocabChunk, kVocabChunk, 1.0F, nullptr);
  const float max = std::max(left.max, right.max);
  const float sum = left.sum * std::exp(left.max - max) + right.sum * std::exp(right.max - max);
  CHECK(math.reduce(logits.data(), 2 * kVocabChunk, 1.0F, nullptr) == LogSumExp{max, sum});
}

TEST_CASE("ids of -inf, banned ids and whole chunks of them add nothing") {
  const VocabMath math = portable_vocab_math();
  for (const float nothing : {-kInfinity, kBannedLogit}) {
    std::vector<float> logits(3 * kVocabChunk, nothing);
    logits[kVocabChunk + 5] = 2.0F;
    const auto n = static_cast<std::int64_t>(logits.size());
    CHECK(math.reduce(logits.data(), n, 2.0F, nullptr) == LogSumExp{4.0F, 1.0F});
    std::vector<float> weights(logits.size());
    math.exp_shifted(logits.data(), n, 2.0F, 4.0F, weights.data());
    CHECK(weights[0] == 0.0F);
    CHECK(weights[kVocabChunk + 5] == 1.0F);
  }
}

}  // namespace
}  // namespace tandem::rollout
