// Guesses of the next tokens from what the text itself said before.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "protocol/trajectory.h"
#include "rollout/scheduler_config.h"

namespace tandem::rollout {

/// Up to `max_tokens` tokens that followed the last earlier place where the longest end of `ids`,
/// of speculation.lookup_min to lookup_max tokens, stands. Where they reach the end of `ids` they
/// go on with themselves. Empty when there is no such place.
std::vector<TokenId> propose_ngram(std::span<const TokenId> ids,
                                   const SpeculationConfig& speculation,
                                   std::int64_t max_tokens);

}  // namespace tandem::rollout
