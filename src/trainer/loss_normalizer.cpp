#include "trainer/loss_normalizer.h"

#include <cmath>

#include "base/error.h"

namespace tandem::trainer {

LossNormalizer::LossNormalizer(std::span<const std::int64_t> tokens, const PolicyLossConfig& config)
    : aggregation_(config.aggregation), norm_length_(config.norm_length) {
  for (const auto n : tokens) {
    TANDEM_CHECK(n >= 0, "a sequence has {} tokens", n);
    num_tokens_ += n;
    num_sequences_ += n > 0 ? 1 : 0;
  }
}

double LossNormalizer::token_weight(std::int64_t sequence_tokens) const {
  if (sequence_tokens == 0) {
    return 0;
  }
  TANDEM_CHECK(sequence_tokens > 0 && sequence_tokens <= num_tokens_,
               "a sequence has {} tokens, its minibatch {}",
               sequence_tokens,
               num_tokens_);
  const auto n_seq = static_cast<double>(num_sequences_);
  switch (aggregation_) {
    case Aggregation::kTokenMean:
      return 1 / static_cast<double>(num_tokens_);
    case Aggregation::kSeqMeanTokenMean:
      return 1 / (static_cast<double>(sequence_tokens) * n_seq);
    case Aggregation::kSeqMeanTokenSum:
      return 1 / n_seq;
    case Aggregation::kSeqMeanTokenSumNorm:
      return 1 / (n_seq * norm_length_);
    case Aggregation::kTokenSum:
      return 1;
  }
  fail<>("aggregation {} is not one", static_cast<int>(aggregation_));
}

template <class T>
std::int64_t num_counted_tokens(std::span<const std::uint8_t> mask,
                                std::span<const T> behavior_logp) {
  TANDEM_CHECK(mask.size() == behavior_logp.size(),
               "mask has {} tokens, behavior_logp {}",
               mask.size(),
               behavior_logp.size());
  std::int64_t n = 0;
  for (std::size_t t = 0; t < mask.size(); ++t) {
    n += mask[t] != 0 && std::isfinite(behavior_logp[t]) ? 1 : 0;
  }
  return n;
}

template std::int64_t num_counted_tokens<float>(std::span<const std::uint8_t>,
                                                std::span<const float>);
template std::int64_t num_counted_tokens<double>(std::span<const std::uint8_t>,
                                                 std::span<const double>);

}  // namespace tandem::trainer
