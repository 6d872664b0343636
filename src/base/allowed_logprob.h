// The log-probability of a sampled token: one definition for the sampler and the trainer.
//
//   logprob = (logit * t - max) - log(sum),   t = 1 / temperature
//
// max and sum are the reduction of logit * t over the ids the token was drawn from:
//   a listed set        reduce_listed() over its logits in id order;
//   all ids             chunks of kVocabChunk ids, each by one fixed tree, merged left to right
//                       (kernels has it; the order is part of the value);
//   all without a few   as all ids, with kBannedLogit in place of each banned logit.
#pragma once

#include <cstdint>
#include <span>

namespace tandem {

/// Ids of the vocabulary that one reduction tree covers.
inline constexpr std::int64_t kVocabChunk = 1024;

/// Stands for a banned id in a reduction over the vocabulary. Finite, so that a chunk in which all
/// ids are banned has a defined maximum at every temperature; its exponential is 0.
inline constexpr float kBannedLogit = -1e30F;

/// At this temperature and below sampling is greedy, and log-probabilities are of temperature 1.
inline constexpr double kGreedyTemperature = 1e-5;

/// Maximum of scaled logits, and the sum of exp(x - max) over them.
struct LogSumExp {
  float max = 0;
  float sum = 0;
  bool operator==(const LogSumExp&) const = default;
};

/// The factor that stands for "divided by `temperature`": 1 for a greedy temperature.
float inverse_temperature(double temperature);

/// Reduces the logits of a listed set, given in id order, in fp32 and one after the other.
///
/// An empty set, and one of only -inf, give {-inf, 0}.
LogSumExp reduce_listed(std::span<const float> logits, float inverse_temperature);

/// The log-probability of the id with `logit` in a set that reduced to `over`.
float logprob_of(float logit, float inverse_temperature, LogSumExp over);

}  // namespace tandem
