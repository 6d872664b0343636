// The k likeliest ids of a row of logits, without sorting the row.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::rollout {

struct Candidate {
  TokenId id = 0;
  float logit = 0;
};

/// The first `count` ids in the order (logit descending, id ascending), in that order.
///
/// Fewer where the row has fewer; ids whose logit is kBannedLogit or less are none of them. One
/// pass over the row with a heap of `count`: equal logits never make it more.
void top_candidates(std::span<const float> logits,
                    std::int64_t count,
                    std::vector<Candidate>& candidates);

}  // namespace tandem::rollout
