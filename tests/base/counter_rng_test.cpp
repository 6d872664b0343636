#include "base/counter_rng.h"

#include <cmath>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem {
namespace {

TEST_CASE("Philox4x32-10 gives the known answer for the zero counter and key") {
  // From the paper's reference implementation (kat_vectors: philox4x32 10, all zero).
  const auto words = random_words({});
  CHECK(words[0] == 0x6627e8d5u);
  CHECK(words[1] == 0xe169c58du);
  CHECK(words[2] == 0xbc57ac4cu);
  CHECK(words[3] == 0x9b00dbd8u);
}

TEST_CASE("every field of the key changes the number") {
  std::set<double> seen;
  seen.insert(random_uniform({}));
  seen.insert(random_uniform({.seed = 1}));
  seen.insert(random_uniform({.draw = 1}));
  seen.insert(random_uniform({.draw = 1ull << 32}));
  seen.insert(random_uniform({.sample = 1}));
  seen.insert(random_uniform({.turn = 1}));
  seen.insert(random_uniform({.position = 1}));
  seen.insert(random_uniform({.purpose = RandomPurpose::kShuffleData}));
  CHECK(seen.size() == 8);
}

TEST_CASE("uniform and normal numbers have their moments") {
  double mean = 0, normal_mean = 0, normal_square = 0;
  constexpr int kDraws = 20000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const double u = random_uniform({.position = i});
    REQUIRE((u >= 0 && u < 1));
    const double n = random_normal({.position = i});
    mean += u / kDraws;
    normal_mean += n / kDraws;
    normal_square += n * n / kDraws;
  }
  CHECK(std::abs(mean - 0.5) < 0.01);
  CHECK(std::abs(normal_mean) < 0.03);
  CHECK(std::abs(normal_square - 1) < 0.05);
}

TEST_CASE("a field out of range is refused") {
  CHECK_THROWS_AS(random_words({.sample = 1u << 24}), Error);
  CHECK_THROWS_AS(random_below({}, 0), Error);
}

}  // namespace
}  // namespace tandem
