#include "rollout/logit_shifts.h"

#include <algorithm>

#include "base/allowed_logprob.h"

namespace tandem::rollout {

std::span<const float> LogitShifts::apply(std::span<const float> logits,
                                          const SamplingParams& params,
                                          std::span<const TokenId> context,
                                          std::int64_t num_generated) {
  if (!params.shifts()) {
    return logits;
  }
  row_.assign(logits.begin(), logits.end());
  for (const auto& [id, bias] : params.logit_bias) {
    if (row_[id] > kBannedLogit) {
      row_[id] += bias;
    }
  }
  if (params.repetition_penalty != 1) {
    count(context);
    repetition(static_cast<float>(params.repetition_penalty));
  }
  if (params.frequency_penalty != 0 || params.presence_penalty != 0) {
    count(context.last(static_cast<std::size_t>(num_generated)));
    frequency(static_cast<float>(params.frequency_penalty),
              static_cast<float>(params.presence_penalty));
  }
  return row_;
}

void LogitShifts::count(std::span<const TokenId> ids) {
  counts_.resize(row_.size());
  for (const TokenId id : seen_) {
    counts_[id] = 0;
  }
  seen_.clear();
  for (const TokenId id : ids) {
    if (id < 0 || static_cast<std::size_t>(id) >= row_.size() || row_[id] <= kBannedLogit) {
      continue;
    }
    if (counts_[id]++ == 0) {
      seen_.push_back(id);
    }
  }
}

// Source: Keskar et al., "CTRL", arXiv:1909.05858, section 4.1, with the usual rule for negative
// logits, which multiplies them, so that a penalty above 1 always lowers the probability.
void LogitShifts::repetition(float penalty) {
  for (const TokenId id : seen_) {
    row_[id] = row_[id] > 0 ? row_[id] / penalty : row_[id] * penalty;
  }
}

void LogitShifts::frequency(float frequency, float presence) {
  for (const TokenId id : seen_) {
    row_[id] -= frequency * static_cast<float>(counts_[id]) + presence;
  }
}

}  // namespace tandem::rollout
