// What a reward function is once it is loaded, whichever process it runs in.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rewards/reward.h"

namespace tandem::rewards {

/// A loaded function. Destroying it ends its life cycle.
class RewardFunction {
 public:
  virtual ~RewardFunction() = default;

  /// Whether `score` takes many samples at once; else it is called with one.
  [[nodiscard]] virtual bool batched() const = 0;

  /// One Score a sample, unchecked; throws where the call failed as a whole. `deadline_ms` is told
  /// to the function, and enforced by whoever calls from another process.
  virtual std::vector<Score> score(std::span<const RewardSample> samples,
                                   std::int64_t step,
                                   std::int64_t deadline_ms) = 0;
};

/// Loads a built-in or a library into this process. Throws UserError naming option or file.
std::unique_ptr<RewardFunction> load_function(const RewardConfig& config);

/// `scores` with what a function must not say turned into failures: values that are not finite.
/// Throws Error when there is not one score a sample.
std::vector<Score> checked(std::vector<Score> scores, std::size_t num_samples);

}  // namespace tandem::rewards
