// Damaged copies of a file, for tests of readers: the same for the same seed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

namespace tandem::test {

/// `content` with a few bytes changed, a piece cut out, doubled or the end cut off.
inline std::string damaged(std::string content, std::uint64_t seed, std::size_t first_bytes) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return n == 0 ? 0 : random() % n; };
  const auto place = [&] { return below(std::min(content.size(), first_bytes)); };
  switch (below(5)) {
    case 0:
      content.resize(below(content.size()));
      break;
    case 1:
      content.erase(place(), 1 + below(16));
      break;
    case 2: {
      const std::size_t at = place();
      content.insert(at, content.substr(at, 1 + below(16)));
      break;
    }
    default:
      for (std::size_t i = 0; i < 1 + below(8) && !content.empty(); ++i) {
        content[place()] = static_cast<char>(below(3) == 0 ? 0xff : random());
      }
  }
  return content;
}

}  // namespace tandem::test
