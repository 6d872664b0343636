#include "base/counter_rng.h"

#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tandem {
namespace {

using Words = std::array<std::uint32_t, 4>;

// One Philox round: two 32x32 multiplications, whose halves are crossed and keyed.
Words philox_round(const Words& c, std::uint32_t key0, std::uint32_t key1) {
  const std::uint64_t p0 = std::uint64_t{0xD2511F53} * c[0];
  const std::uint64_t p1 = std::uint64_t{0xCD9E8D57} * c[2];
  return {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ key0,
          static_cast<std::uint32_t>(p1),
          static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ key1,
          static_cast<std::uint32_t>(p0)};
}

Words philox4x32(Words counter, std::uint64_t seed) {
  auto key0 = static_cast<std::uint32_t>(seed);
  auto key1 = static_cast<std::uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key0, key1);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

double to_uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return static_cast<double>(bits) * 0x1p-53;
}

}  // namespace

std::array<std::uint32_t, 4> random_words(const RandomKey& key) {
  TANDEM_CHECK(
      key.draw < (std::uint64_t{1} << 40), "random key: draw {} is 2^40 or more", key.draw);
  TANDEM_CHECK(key.sample < (1u << 24), "random key: sample {} is 2^24 or more", key.sample);
  TANDEM_CHECK(key.turn < (1u << 16), "random key: turn {} is 2^16 or more", key.turn);
  // The fields fill the 128-bit counter without overlap, so that no two keys share a number.
  const Words counter = {static_cast<std::uint32_t>(key.draw),
                         static_cast<std::uint32_t>(key.draw >> 32) << 24 | key.sample,
                         key.position,
                         key.turn << 16 | static_cast<std::uint32_t>(key.purpose)};
  return philox4x32(counter, key.seed);
}

double random_uniform(const RandomKey& key) {
  const auto words = random_words(key);
  return to_uniform(words[0], words[1]);
}

double random_normal(const RandomKey& key) {
  const auto words = random_words(key);
  const double radius = std::sqrt(-2.0 * std::log(1.0 - to_uniform(words[0], words[1])));
  return radius * std::cos(2.0 * std::numbers::pi * to_uniform(words[2], words[3]));
}

std::uint64_t random_below(const RandomKey& key, std::uint64_t n) {
  TANDEM_CHECK(n > 0, "random_below: n is 0");
  const auto words = random_words(key);
  const std::uint64_t bits = std::uint64_t{words[0]} << 32 | words[1];
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(bits) * n) >> 64);
}

}  // namespace tandem
