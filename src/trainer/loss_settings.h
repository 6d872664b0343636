// The settings that tell one policy-gradient loss from another, and the presets by algorithm name.
#pragma once

#include <string_view>

#include "trainer/advantages.h"

namespace tandem::trainer {

enum class Objective {
  kClip,   // max(-A r, -A clip(r)): Schulman et al., arXiv:1707.06347, eq. 7
  kCispo,  // -sg(clip(r)) A logp: MiniMax-M1, arXiv:2506.13585, eq. 4
};

enum class RatioLevel {
  kToken,     // r_t = exp(logp_t - behavior_logp_t)
  kSequence,  // one r for all tokens: exp of the summed differences, as in RLOO
};

enum class KlEstimator {  // d = ref_logp - logp; value, derivative by logp
  kK1,                    // -d, 1
  kAbs,                   // |d|, sign(-d)
  kK2,                    // d^2 / 2, -d
  kK3,                    // e^d - d - 1, 1 - e^d
  kK1Plus,                // value of k1, derivative of k2
  kK3Plus,                // value of k3, derivative of k2
};

// N_tok and N_seq count the whole optimizer minibatch; n_i are the counted tokens of sequence i.
enum class Aggregation {
  kTokenMean,            // sum of l / N_tok
  kSeqMeanTokenMean,     // sum over i of (sum of l / n_i) / N_seq
  kSeqMeanTokenSum,      // sum of l / N_seq
  kSeqMeanTokenSumNorm,  // sum of l / (N_seq L), L = norm_length
  kTokenSum,             // sum of l
};

struct KlConfig {
  double coefficient = 0;  // 0 leaves the term out, and the reference is not needed
  KlEstimator estimator = KlEstimator::kK3;
};

struct PolicyLossConfig {
  Objective objective = Objective::kClip;
  RatioLevel ratio_level = RatioLevel::kToken;
  double clip_low = 0.2;   // the ratio's lower bound is 1 - clip_low, in [0, 1]; 1 is no bound
  double clip_high = 0.2;  // the ratio's upper bound is 1 + clip_high; DAPO uses 0.28
  double clip_dual = 0;    // caps the loss at -A * clip_dual where A < 0; above 1, or 0 for none
  KlConfig kl{};
  double entropy_coefficient = 0;  // the loss falls by this times the aggregated entropy
  Aggregation aggregation = Aggregation::kSeqMeanTokenMean;
  double norm_length = 0;  // L of seq-mean-token-sum-norm: the longest completion allowed, tokens
};

/// What an `algorithm.name` stands for before its parts are overridden.
struct AlgorithmPreset {
  std::string_view name;
  AdvantageEstimator estimator = AdvantageEstimator::kGrpo;
  PolicyLossConfig loss{};  // norm_length is left at 0 for the caller, who knows max_new_tokens
};

/// The preset of that name. Throws UserError that lists the names there are.
const AlgorithmPreset& algorithm_preset(std::string_view name);

/// Throws UserError, naming the recipe's key, for values out of range and for combinations that
/// have no meaning: a sequence ratio under any other mean than one over sequences, CISPO with a
/// sequence ratio or a dual clip, a missing norm_length.
void check_policy_loss(const PolicyLossConfig& config);

/// The recipe's words: "token-mean", "seq-mean-token-mean" ..., "k1", "k2", "k3", "abs", "k3+".
std::string_view name_of(Aggregation aggregation);
std::string_view name_of(KlEstimator estimator);

/// The value of that name. Throws UserError that lists the names there are.
Aggregation aggregation_from(std::string_view name);
KlEstimator kl_estimator_from(std::string_view name);

}  // namespace tandem::trainer
