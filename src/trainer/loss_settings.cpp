#include "trainer/loss_settings.h"

#include <array>
#include <cmath>
#include <string>

#include "base/error.h"

namespace tandem::trainer {
namespace {

// The order of both lists is that of their enum.
constexpr std::array<std::string_view, 5> kAggregations = {"token-mean",
                                                           "seq-mean-token-mean",
                                                           "seq-mean-token-sum",
                                                           "seq-mean-token-sum-norm",
                                                           "token-sum"};
constexpr std::array<std::string_view, 6> kKlEstimators = {"k1", "abs", "k2", "k3", "k1+", "k3+"};

constexpr std::array<AlgorithmPreset, 5> kPresets = {{
    {.name = "grpo",
     .estimator = AdvantageEstimator::kGrpo,
     .loss = {.aggregation = Aggregation::kSeqMeanTokenMean}},
    {.name = "dr_grpo",
     .estimator = AdvantageEstimator::kDrGrpo,
     .loss = {.aggregation = Aggregation::kSeqMeanTokenSumNorm}},
    {.name = "dapo",
     .estimator = AdvantageEstimator::kGrpo,
     .loss = {.clip_high = 0.28, .aggregation = Aggregation::kTokenMean}},
    // Only the upper side of the ratio is capped: a bound of 0 below changes nothing.
    {.name = "cispo",
     .estimator = AdvantageEstimator::kGrpo,
     .loss = {.objective = Objective::kCispo,
              .clip_low = 1.0,
              .clip_high = 4.0,
              .aggregation = Aggregation::kTokenMean}},
    {.name = "rloo",
     .estimator = AdvantageEstimator::kRloo,
     .loss = {.ratio_level = RatioLevel::kSequence, .aggregation = Aggregation::kSeqMeanTokenMean}},
}};

std::string_view name_in(const std::string_view& name) {
  return name;
}

std::string_view name_in(const AlgorithmPreset& preset) {
  return preset.name;
}

// Index of `name` in `list`, or a UserError that shows the list.
template <class List>
std::size_t find_name(const List& list, std::string_view key, std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (name_in(list[i]) == name) {
      return i;
    }
    known.append(i == 0 ? "" : ", ").append(name_in(list[i]));
  }
  fail<UserError>("{}: unknown value {}; known are {}", key, name, known);
}

void require(bool condition, std::string_view text) {
  if (!condition) {
    fail<UserError>("{}", text);
  }
}

bool is_at_least_zero(double x) {
  return std::isfinite(x) && x >= 0;
}

}  // namespace

const AlgorithmPreset& algorithm_preset(std::string_view name) {
  return kPresets[find_name(kPresets, "algorithm.name", name)];
}

void check_policy_loss(const PolicyLossConfig& c) {
  require(c.clip_low >= 0 && c.clip_low <= 1, "algorithm.clip_low: must be between 0 and 1");
  require(is_at_least_zero(c.clip_high), "algorithm.clip_high: must be 0 or more");
  require(c.clip_dual == 0 || (std::isfinite(c.clip_dual) && c.clip_dual > 1),
          "algorithm.clip_dual: must be above 1, or 0 for none");
  require(is_at_least_zero(c.kl.coefficient), "algorithm.kl.coefficient: must be 0 or more");
  require(std::isfinite(c.entropy_coefficient), "algorithm.entropy_coefficient: must be finite");
  require(c.aggregation != Aggregation::kSeqMeanTokenSumNorm ||
              (std::isfinite(c.norm_length) && c.norm_length > 0),
          "algorithm.aggregation: seq-mean-token-sum-norm needs a positive length to divide by; "
          "set rollout.max_new_tokens");
  require(c.objective != Objective::kCispo || c.ratio_level == RatioLevel::kToken,
          "algorithm.name: cispo weights tokens and has no sequence ratio");
  require(c.objective != Objective::kCispo || c.clip_dual == 0,
          "algorithm.clip_dual: has no meaning for cispo, whose weights are capped already");
  require(c.ratio_level == RatioLevel::kToken || c.aggregation == Aggregation::kSeqMeanTokenMean,
          "algorithm.aggregation: a sequence ratio needs seq-mean-token-mean; sums over tokens "
          "would weight sequences by their length");
}

std::string_view name_of(Aggregation aggregation) {
  return kAggregations.at(static_cast<std::size_t>(aggregation));
}

std::string_view name_of(KlEstimator estimator) {
  return kKlEstimators.at(static_cast<std::size_t>(estimator));
}

Aggregation aggregation_from(std::string_view name) {
  return static_cast<Aggregation>(find_name(kAggregations, "algorithm.aggregation", name));
}

KlEstimator kl_estimator_from(std::string_view name) {
  return static_cast<KlEstimator>(find_name(kKlEstimators, "algorithm.kl.estimator", name));
}

}  // namespace tandem::trainer
