#include "trainer/policy_loss.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace tandem::trainer {
namespace {

constexpr double kMaxLogRatio = 20;  // e^20 is 5e8: large enough to clip, far from overflow

// The policy term of a token, or of a sequence where the ratio is the sequence's.
struct PolicyTerm {
  double loss = 0;
  double slope = 0;  // derivative by logp (through the log ratio, or by CISPO's own logp)
  bool low = false;
  bool high = false;
  bool dual = false;
};

PolicyTerm clipped_term(double log_ratio, double advantage, const PolicyLossConfig& config) {
  const double inside = std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio);
  const double ratio = std::exp(inside);
  const double bounded = std::clamp(ratio, 1 - config.clip_low, 1 + config.clip_high);
  PolicyTerm term;
  term.low = advantage < 0 && ratio < bounded;
  term.high = advantage > 0 && ratio > bounded;
  if (term.low || term.high) {
    term.loss = -advantage * bounded;
  } else {
    term.loss = -advantage * ratio;
    term.slope = inside == log_ratio ? term.loss : 0;
  }
  if (config.clip_dual > 0 && advantage < 0 && term.loss > -advantage * config.clip_dual) {
    term.loss = -advantage * config.clip_dual;
    term.slope = 0;
    term.dual = true;
  }
  return term;
}

PolicyTerm cispo_term(double log_ratio, double advantage, double logp, const PolicyLossConfig& c) {
  const double ratio = std::exp(std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio));
  const double weight = std::clamp(ratio, 1 - c.clip_low, 1 + c.clip_high);
  PolicyTerm term;
  term.slope = -weight * advantage;
  term.loss = term.slope * logp;
  term.low = ratio < weight;
  term.high = ratio > weight;
  return term;
}

void count_clips(const PolicyTerm& term, std::int64_t num_tokens, PolicyLossSums& sums) {
  sums.num_clipped_low += term.low ? num_tokens : 0;
  sums.num_clipped_high += term.high ? num_tokens : 0;
  sums.num_clipped_dual += term.dual ? num_tokens : 0;
}

void add_ratio(double log_ratio, PolicyLossSums& sums) {
  const double ratio = std::exp(std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio));
  sums.log_ratio += log_ratio;
  sums.logp_gap += std::abs(log_ratio);
  sums.ratio += ratio;
  sums.ratio_min = std::min(sums.ratio_min, ratio);
  sums.ratio_max = std::max(sums.ratio_max, ratio);
  sums.logp_gap_max = std::max(sums.logp_gap_max, std::abs(log_ratio));
  sums.num_ratio_not_one += ratio != 1 ? 1 : 0;
}

template <class T>
void check_lengths(const SequenceLossInput<T>& input,
                   const PolicyLossConfig& config,
                   const SequenceLossGradient<T>& gradient) {
  const auto n = input.mask.size();
  const auto optional = [n](const auto& span, bool needed) {
    return span.size() == n || (span.empty() && !needed);
  };
  TANDEM_CHECK(input.logp.size() == n && input.behavior_logp.size() == n,
               "mask has {} tokens, logp {}, behavior_logp {}",
               n,
               input.logp.size(),
               input.behavior_logp.size());
  TANDEM_CHECK(optional(input.ref_logp, config.kl.coefficient != 0),
               "mask has {} tokens, ref_logp {}",
               n,
               input.ref_logp.size());
  TANDEM_CHECK(optional(input.entropy, config.entropy_coefficient != 0) &&
                   optional(gradient.entropy, config.entropy_coefficient != 0),
               "mask has {} tokens, entropy {}, its gradient {}",
               n,
               input.entropy.size(),
               gradient.entropy.size());
  TANDEM_CHECK(
      gradient.logp.size() == n, "mask has {} tokens, the gradient {}", n, gradient.logp.size());
}

// One sequence being evaluated: what its helpers share.
template <class T>
class Evaluation {
 public:
  Evaluation(const SequenceLossInput<T>& input,
             const PolicyLossConfig& config,
             double token_weight,
             PolicyLossSums& sums)
      : input_(input), config_(config), weight_(token_weight), sums_(sums) {}

  [[nodiscard]] bool counts(std::size_t t) const {
    return input_.mask[t] != 0 && std::isfinite(input_.behavior_logp[t]);
  }

  // Counted, and nothing about it is broken.
  [[nodiscard]] bool usable(std::size_t t) const {
    return counts(t) && std::isfinite(input_.logp[t]) &&
           (input_.ref_logp.empty() || std::isfinite(input_.ref_logp[t])) &&
           (input_.entropy.empty() || std::isfinite(input_.entropy[t]));
  }

  [[nodiscard]] double log_ratio(std::size_t t) const {
    return static_cast<double>(input_.logp[t]) - static_cast<double>(input_.behavior_logp[t]);
  }

  // For a sequence ratio: its term, which is one for all tokens and is added here.
  [[nodiscard]] PolicyTerm sequence_term() const {
    double sum = 0;
    std::int64_t num_tokens = 0;
    for (std::size_t t = 0; t < input_.mask.size(); ++t) {
      if (usable(t)) {
        sum += log_ratio(t);
        ++num_tokens;
      }
    }
    PolicyTerm term = clipped_term(sum, input_.advantage, config_);
    count_clips(term, num_tokens, sums_);
    // The weight of a token is that of the sequence's share; each token moves the whole sum.
    term.slope *= static_cast<double>(num_tokens);
    return term;
  }

  // Adds the policy loss of token t and returns its derivative, both before the weight.
  [[nodiscard]] double add_policy(std::size_t t, const PolicyTerm& of_sequence) {
    PolicyTerm term = of_sequence;
    if (config_.ratio_level == RatioLevel::kToken) {
      term = config_.objective == Objective::kCispo
                 ? cispo_term(log_ratio(t), input_.advantage, input_.logp[t], config_)
                 : clipped_term(log_ratio(t), input_.advantage, config_);
      count_clips(term, 1, sums_);
    }
    sums_.policy_loss += weight_ * term.loss;
    sums_.loss += weight_ * term.loss;
    return term.slope;
  }

  // The same for the KL term; the metric is always k3.
  [[nodiscard]] double add_kl(std::size_t t) {
    if (input_.ref_logp.empty()) {
      return 0;
    }
    const double logp = input_.logp[t];
    const double ref_logp = input_.ref_logp[t];
    sums_.kl += kl_term(KlEstimator::kK3, logp, ref_logp).value;
    if (config_.kl.coefficient == 0) {
      return 0;
    }
    const auto kl = kl_term(config_.kl.estimator, logp, ref_logp);
    sums_.loss += weight_ * config_.kl.coefficient * kl.value;
    return config_.kl.coefficient * kl.slope;
  }

  void add_entropy(std::size_t t) {
    if (!input_.entropy.empty()) {
      sums_.entropy += input_.entropy[t];
      sums_.loss -= weight_ * config_.entropy_coefficient * input_.entropy[t];
    }
  }

 private:
  const SequenceLossInput<T>& input_;
  const PolicyLossConfig& config_;
  double weight_;
  PolicyLossSums& sums_;
};

}  // namespace

bool PolicyLossSums::finite() const {
  return std::isfinite(loss) && num_nonfinite == 0;
}

PolicyLossSums& PolicyLossSums::operator+=(const PolicyLossSums& other) {
  loss += other.loss;
  policy_loss += other.policy_loss;
  num_tokens += other.num_tokens;
  kl += other.kl;
  entropy += other.entropy;
  log_ratio += other.log_ratio;
  logp_gap += other.logp_gap;
  ratio += other.ratio;
  ratio_min = std::min(ratio_min, other.ratio_min);
  ratio_max = std::max(ratio_max, other.ratio_max);
  logp_gap_max = std::max(logp_gap_max, other.logp_gap_max);
  num_ratio_not_one += other.num_ratio_not_one;
  num_clipped_low += other.num_clipped_low;
  num_clipped_high += other.num_clipped_high;
  num_clipped_dual += other.num_clipped_dual;
  num_behavior_excluded += other.num_behavior_excluded;
  num_nonfinite += other.num_nonfinite;
  return *this;
}

bool has_loss(double advantage, const PolicyLossConfig& config) {
  return advantage != 0 || config.kl.coefficient != 0 || config.entropy_coefficient != 0;
}

template <class T>
void sequence_loss(const SequenceLossInput<T>& input,
                   const PolicyLossConfig& config,
                   double token_weight,
                   const SequenceLossGradient<T>& gradient,
                   PolicyLossSums& sums) {
  check_lengths(input, config, gradient);
  std::fill(gradient.logp.begin(), gradient.logp.end(), T{0});
  std::fill(gradient.entropy.begin(), gradient.entropy.end(), T{0});
  Evaluation<T> evaluation(input, config, token_weight, sums);
  PolicyTerm of_sequence;
  if (config.ratio_level == RatioLevel::kSequence) {
    of_sequence = evaluation.sequence_term();
  }
  for (std::size_t t = 0; t < input.mask.size(); ++t) {
    if (!evaluation.usable(t)) {
      sums.num_behavior_excluded += input.mask[t] != 0 && !evaluation.counts(t) ? 1 : 0;
      sums.num_nonfinite += evaluation.counts(t) ? 1 : 0;
      continue;
    }
    ++sums.num_tokens;
    add_ratio(evaluation.log_ratio(t), sums);
    const double slope = evaluation.add_policy(t, of_sequence) + evaluation.add_kl(t);
    gradient.logp[t] = static_cast<T>(token_weight * slope);
    evaluation.add_entropy(t);
    if (!gradient.entropy.empty()) {
      gradient.entropy[t] = static_cast<T>(-token_weight * config.entropy_coefficient);
    }
  }
}

ValueAndSlope kl_term(KlEstimator estimator, double logp, double ref_logp) {
  const double d = ref_logp - logp;
  const double exp_d = std::exp(std::min(d, kMaxLogRatio));
  switch (estimator) {
    case KlEstimator::kK1:
      return {-d, 1};
    case KlEstimator::kAbs:
      return {std::abs(d), d > 0 ? -1.0 : (d < 0 ? 1.0 : 0.0)};
    case KlEstimator::kK2:
      return {0.5 * d * d, -d};
    case KlEstimator::kK3:
      return {exp_d - d - 1, 1 - exp_d};
    case KlEstimator::kK1Plus:
      return {-d, -d};
    case KlEstimator::kK3Plus:
      return {exp_d - d - 1, -d};
  }
  fail<>("KL estimator {} is not one", static_cast<int>(estimator));
}

template void sequence_loss<float>(const SequenceLossInput<float>&,
                                   const PolicyLossConfig&,
                                   double,
                                   const SequenceLossGradient<float>&,
                                   PolicyLossSums&);
template void sequence_loss<double>(const SequenceLossInput<double>&,
                                    const PolicyLossConfig&,
                                    double,
                                    const SequenceLossGradient<double>&,
                                    PolicyLossSums&);

}  // namespace tandem::trainer
