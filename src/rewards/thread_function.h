// A reward function called inside this process: `isolation: thread`.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "rewards/function.h"

namespace tandem::rewards {

/// Exceptions cost a sample here too; a crash or a hang is the whole process's, and the deadline is
/// told to the function but not enforced.
class ThreadFunction {
 public:
  /// Loads the function. Throws UserError as load_function does.
  explicit ThreadFunction(const RewardConfig& config);

  /// One Score a sample. A function that allows it is called from several threads at a time.
  std::vector<Score> score(std::span<const RewardSample> samples,
                           std::int64_t step,
                           std::int64_t deadline_ms);

 private:
  void score_range(std::span<const RewardSample> samples,
                   std::int64_t step,
                   std::int64_t deadline_ms,
                   std::span<Score> scores);

  std::unique_ptr<RewardFunction> function_;
  bool thread_safe_ = false;
};

}  // namespace tandem::rewards
