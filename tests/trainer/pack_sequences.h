// Sequences that own what a pack only views, for tests of packing.
#pragma once

#include <cstdint>
#include <vector>

#include "trainer/prefix_tree.h"

namespace tandem::trainer {

struct Sequence {
  std::vector<TokenId> ids;
  std::int64_t prompt_length = 1;
  std::vector<std::uint8_t> wanted;
};

inline std::vector<PackSequence> views(const std::vector<Sequence>& sequences) {
  std::vector<PackSequence> result;
  for (const auto& s : sequences) {
    result.push_back({.ids = s.ids, .prompt_length = s.prompt_length, .wanted = s.wanted});
  }
  return result;
}

}  // namespace tandem::trainer
