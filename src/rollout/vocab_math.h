// The arithmetic over a whole row of logits, as functions that the caller gives.
#pragma once

#include <cstdint>
#include <vector>

#include "base/allowed_logprob.h"

namespace tandem::rollout {

/// What the sampler needs from the kernels that the trainer uses too, so that both get the same
/// bits. n is the number of ids of the vocabulary: padding behind them is never read.
///
/// A row may hold -inf and kBannedLogit; a chunk of only -inf counts as the sum 0. A NaN is seen by
/// the sampler before these are called.
struct VocabMath {
  /// Reduction of logits * inverse_temperature over [0, n) as base/allowed_logprob.h defines it.
  /// `chunks` gets that of each chunk of kVocabChunk alone; may be null.
  LogSumExp (*reduce)(const float* logits,
                      std::int64_t n,
                      float inverse_temperature,
                      std::vector<LogSumExp>* chunks);

  /// out[i] = exp(logits[i] * inverse_temperature - max) for n logits, exactly 0 for -inf and
  /// kBannedLogit: what has no probability must not be drawn.
  void (*exp_shifted)(
      const float* logits, std::int64_t n, float inverse_temperature, float max, float* out);
};

/// Plain C++ for machines without kernels of their own, and for tests.
VocabMath portable_vocab_math();

}  // namespace tandem::rollout
