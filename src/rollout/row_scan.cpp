#include "rollout/row_scan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace tandem::rollout {
namespace {

constexpr std::size_t kLanes = 16;

// Lanes side by side, so that the compiler makes vectors of them without reordering anything.
struct Lanes {
  std::array<float, kLanes> max;
  std::array<std::uint32_t, kLanes> bad{};

  Lanes() { max.fill(-std::numeric_limits<float>::infinity()); }

  void look(const float* logits, std::size_t size) {
    for (std::size_t lane = 0; lane < size; ++lane) {
      const float logit = logits[lane];
      max[lane] = logit > max[lane] ? logit : max[lane];
      bad[lane] |= logit <= std::numeric_limits<float>::max() ? 0U : 1U;
    }
  }
};

}  // namespace

RowScan scan_row(std::span<const float> logits) {
  Lanes lanes;
  std::size_t at = 0;
  for (; at + kLanes <= logits.size(); at += kLanes) {
    lanes.look(logits.data() + at, kLanes);
  }
  lanes.look(logits.data() + at, logits.size() - at);
  RowScan scan;
  scan.max = *std::ranges::max_element(lanes.max);
  scan.usable = *std::ranges::max_element(lanes.bad) == 0;
  return scan;
}

}  // namespace tandem::rollout
