// Random numbers as a function of a key: no state to save, the same draw whatever the schedule.
#pragma once

#include <array>
#include <cstdint>

namespace tandem {

/// What a random number is for. Values are part of the stream: append, never renumber.
enum class RandomPurpose : std::uint16_t {
  kSampleToken = 0,
  kShuffleData = 1,
  kInitWeights = 2,
  kShuffleMinibatch = 3,
  kMakeData = 4,
};

/// Names one random number. Two keys that differ in any field give independent numbers.
struct RandomKey {
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;    // index of the group in the global data stream; below 2^40
  std::uint32_t sample = 0;  // below 2^24
  std::uint32_t turn = 0;    // below 2^16
  std::uint32_t position = 0;
  RandomPurpose purpose = RandomPurpose::kSampleToken;
};

/// Four independent uniform 32-bit words for `key`.
///
/// Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011 (Philox4x32-10).
/// Throws tandem::Error when a field is out of its range.
std::array<std::uint32_t, 4> random_words(const RandomKey& key);

/// A uniform number in [0, 1) with 53 random bits.
double random_uniform(const RandomKey& key);

/// A standard normal number (Box-Muller on the words of `key`).
double random_normal(const RandomKey& key);

/// A uniform integer in [0, n), n at least 1; the bias is below n / 2^64.
std::uint64_t random_below(const RandomKey& key, std::uint64_t n);

}  // namespace tandem
