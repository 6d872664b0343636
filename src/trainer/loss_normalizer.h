// The denominators of a loss, and which tokens they count.
#pragma once

#include <cstdint>
#include <span>

#include "trainer/loss_settings.h"

namespace tandem::trainer {

/// The denominators of a loss, counted over a whole optimizer minibatch (all micro-batches and
/// ranks) before the first backward pass, so that gradients of micro-batches just add up.
class LossNormalizer {
 public:
  /// `tokens` holds the counted tokens of each sequence; sequences without any leave N_seq.
  LossNormalizer(std::span<const std::int64_t> tokens, const PolicyLossConfig& config);

  /// The factor of each token loss of a sequence with that many counted tokens; 0 for none.
  [[nodiscard]] double token_weight(std::int64_t sequence_tokens) const;

  /// True when no token counts: the optimizer step is to be skipped.
  [[nodiscard]] bool empty() const { return num_tokens_ == 0; }
  [[nodiscard]] std::int64_t num_tokens() const { return num_tokens_; }
  [[nodiscard]] std::int64_t num_sequences() const { return num_sequences_; }

 private:
  Aggregation aggregation_;
  double norm_length_;
  std::int64_t num_tokens_ = 0;
  std::int64_t num_sequences_ = 0;
};

/// Tokens that count: unmasked ones with a finite `behavior_logp`. This is what LossNormalizer
/// is to be given, and what `sequence_loss` uses.
template <class T>
std::int64_t num_counted_tokens(std::span<const std::uint8_t> mask,
                                std::span<const T> behavior_logp);

}  // namespace tandem::trainer
