#include "rewards/function.h"

#include <cmath>

#include "base/error.h"
#include "rewards/builtin/builtin.h"
#include "rewards/library_function.h"

namespace tandem::rewards {

std::unique_ptr<RewardFunction> load_function(const RewardConfig& config) {
  return config.kind == "library" ? load_library_function(config) : make_builtin(config);
}

std::vector<Score> checked(std::vector<Score> scores, std::size_t num_samples) {
  TANDEM_CHECK(scores.size() == num_samples,
               "returned {} scores for {} samples",
               scores.size(),
               num_samples);
  for (Score& score : scores) {
    if (score.value && !std::isfinite(*score.value)) {
      score.failure = fmt::format("returned {}", *score.value);
      score.value.reset();
    }
  }
  return scores;
}

}  // namespace tandem::rewards
