// Reductions over the vocabulary on one thread: what they take, and their entries in the table.
#pragma once

#include <stdint.h>

namespace tandem::kernels {

/// Of scaled logits x: their maximum, the sum of e = exp(x - max), and the sum of e * (x - max).
struct VocabPartial {
  float max = 0;
  float sum = 0;
  float weighted = 0;
};

/// What a row's logits in one chunk are differentiated by. With x = inverse_temperature * logit and
/// p = exp(x - max) / sum, a logit's gradient is
///   -inverse_temperature * p * (logprob_grad + entropy_grad * (log p + entropy)).
struct VocabGradient {
  float inverse_temperature = 1;
  float max = 0;
  float sum = 1;
  float log_sum = 0;
  float entropy = 0;
  float logprob_grad = 0;  // summed over the row's terms; each target's own share comes on top
  float entropy_grad = 0;
};

struct VocabTable {
  /// One chunk, of n in [1, 1024] logits.
  VocabPartial (*reduce_chunk)(const float* logits, int64_t n, float inverse_temperature);
  /// Merges the chunks of a row from left to right.
  VocabPartial (*merge_chunks)(const VocabPartial* parts, int64_t num_parts);
  /// out[i] = exp(logits[i] * inverse_temperature - max)
  void (*exp_shifted)(
      const float* logits, int64_t n, float inverse_temperature, float max, float* out);
  /// Replaces logits by their gradients, but for the targets' own shares.
  void (*differentiate)(float* logits, int64_t n, const VocabGradient& gradient);
};

}  // namespace tandem::kernels
