// math: 1 when the final answer of the completion means the ground truth, else 0.
#include "rewards/builtin/builtin.h"
#include "rewards/math/answer.h"
#include "rewards/math/answer_text.h"

namespace tandem::rewards {

BuiltinScore make_math(Options& options) {
  AnswerOptions answers;
  answers.precision = static_cast<int>(options.integer("precision", answers.precision, 0));
  if (answers.precision > 15) {
    options.refuse("option precision is more than 15 decimals");
  }
  return [answers](const RewardSample& sample) -> std::optional<double> {
    const std::string truth = stated_answer(sample.ground_truth);
    if (truth.empty()) {
      return std::nullopt;  // nothing to compare with
    }
    return same_answer(truth, final_answer(sample.completion), answers) ? 1.0 : 0.0;
  };
}

}  // namespace tandem::rewards
