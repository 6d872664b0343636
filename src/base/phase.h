// The two states of a process that share one memory, and the version of its weights.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace tandem {

/// Counts the writes to the weights. Whatever is derived from them (KV blocks, prefix hashes,
/// packed panels) carries the version it was made from, and an older one is unreachable, not
/// flushed.
using WeightVersion = std::int64_t;

enum class Phase { kRollout, kTrain };

constexpr std::string_view name_of(Phase phase) {
  return phase == Phase::kRollout ? "rollout" : "train";
}

/// Throws tandem::Error when `now` is not `needed`; `what` names the refused operation.
inline void require_phase(Phase now, Phase needed, std::string_view what) {
  TANDEM_CHECK(now == needed,
               "{} needs the {} phase, the process is in the {} phase",
               what,
               name_of(needed),
               name_of(now));
}

}  // namespace tandem
