// One look at a row of logits before anything is computed from it.
#pragma once

#include <span>

namespace tandem::rollout {

struct RowScan {
  float max = 0;        // of what is not NaN; -inf for a row of nothing else
  bool usable = false;  // no NaN and no +inf
};

RowScan scan_row(std::span<const float> logits);

}  // namespace tandem::rollout
