// Bias and penalties: what moves probabilities without removing an id.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rollout/sampling_params.h"

namespace tandem::rollout {

/// Applies, in this order, the logit bias, the repetition penalty over prompt and output, and the
/// frequency and presence penalties over the output alone. Keeps its buffers: one a thread.
class LogitShifts {
 public:
  /// `logits` are not changed: the result is theirs where nothing shifts, else a row of this object
  /// that is valid until the next call. `context` is prompt and output, the last `num_generated`
  /// of it are the output. Banned ids stay banned.
  std::span<const float> apply(std::span<const float> logits,
                               const SamplingParams& params,
                               std::span<const TokenId> context,
                               std::int64_t num_generated);

 private:
  void count(std::span<const TokenId> ids);
  void repetition(float penalty);
  void frequency(float frequency, float presence);

  std::vector<float> row_;
  std::vector<std::int32_t> counts_;  // per id, 0 between calls
  std::vector<TokenId> seen_;         // ids with a count
};

}  // namespace tandem::rollout
