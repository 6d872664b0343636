// The policy-gradient losses: one implementation; GRPO, DAPO, RLOO and CISPO are settings of it.
//
// Plain arithmetic over the tokens of one sequence. The model's head gives log-probabilities and
// entropies and takes the derivatives of the loss by them, so no tensor is needed here.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include "trainer/loss_settings.h"

namespace tandem::trainer {

/// One sequence; all spans have one entry a completion token. T is float or double.
template <class T>
struct SequenceLossInput {
  std::span<const T> logp{};             // of the policy being trained
  std::span<const T> behavior_logp{};    // as sampled
  std::span<const T> ref_logp{};         // of the reference; may be empty when kl.coefficient is 0
  std::span<const T> entropy{};          // may be empty when entropy_coefficient is 0
  std::span<const std::uint8_t> mask{};  // 1 where the policy wrote the token and it counts
  double advantage = 0;
};

/// Where the derivatives go; 0 is written where a token does not count.
template <class T>
struct SequenceLossGradient {
  std::span<T> logp{};
  std::span<T> entropy{};  // may be empty when entropy_coefficient is 0
};

/// What a loss adds up, over any number of sequences. Shares are these counts over num_tokens.
struct PolicyLossSums {
  double loss = 0;         // the whole loss, weights included
  double policy_loss = 0;  // its policy term alone, weights included
  std::int64_t num_tokens = 0;
  double kl = 0;         // sum over tokens of k3 against the reference, whatever the loss uses
  double entropy = 0;    // sum over tokens
  double log_ratio = 0;  // sum over tokens of logp - behavior_logp
  double logp_gap = 0;   // sum over tokens of |logp - behavior_logp|
  double ratio = 0;      // sum over tokens of exp(logp - behavior_logp)
  double ratio_min = std::numeric_limits<double>::infinity();
  double ratio_max = -std::numeric_limits<double>::infinity();
  double logp_gap_max = 0;                 // largest |logp - behavior_logp|
  std::int64_t num_ratio_not_one = 0;      // tokens
  std::int64_t num_clipped_low = 0;        // tokens whose ratio is below the range and A < 0
  std::int64_t num_clipped_high = 0;       // tokens whose ratio is above the range and A > 0
  std::int64_t num_clipped_dual = 0;       // tokens that the dual clip capped
  std::int64_t num_behavior_excluded = 0;  // unmasked tokens whose behavior_logp is not finite
  std::int64_t num_nonfinite = 0;          // counted tokens whose logp, ref_logp or entropy is not

  /// False when the step must be skipped.
  [[nodiscard]] bool finite() const;
  PolicyLossSums& operator+=(const PolicyLossSums& other);
};

/// False when a sequence with that advantage changes neither the loss nor a gradient.
bool has_loss(double advantage, const PolicyLossConfig& config);

/// Adds one sequence's loss to `sums` and writes the derivatives by its log-probabilities and
/// entropies. With w = token_weight, D_t = logp_t - behavior_logp_t clamped to [-20, 20], and
/// r_t = exp(D_t), or for RatioLevel::kSequence r_t = exp(clamped sum of D):
///
///   kClip:  l_t = max(-A r_t, -A clip(r_t, 1 - clip_low, 1 + clip_high)); where A < 0 and
///           clip_dual is set, l_t = min(l_t, -A clip_dual)   (Ye et al., arXiv:1912.09729, eq. 5)
///   kCispo: l_t = -sg(clip(r_t)) A logp_t
///   loss   = sum over counted t of w (l_t + kl.coefficient kl_t - entropy_coefficient H_t)
///
/// Where logp and behavior_logp are the same bits, r_t is exactly 1. Masked entries are never
/// read. A clamped D has no derivative. A counted token whose logp, ref_logp or entropy is not
/// finite adds nothing but its count. Throws Error when lengths differ.
template <class T>
void sequence_loss(const SequenceLossInput<T>& input,
                   const PolicyLossConfig& config,
                   double token_weight,
                   const SequenceLossGradient<T>& gradient,
                   PolicyLossSums& sums);

struct ValueAndSlope {
  double value = 0;
  double slope = 0;  // derivative by logp
};

/// The KL estimate of one token: Schulman, "Approximating KL Divergence" (2020).
///
/// k3's exponent is capped at 20; verl also caps its value at 10, which takes away the gradient
/// exactly where the policy has drifted most, so this does not.
ValueAndSlope kl_term(KlEstimator estimator, double logp, double ref_logp);

}  // namespace tandem::trainer
