// exact_match: 1 when the trimmed completion equals the trimmed ground truth, else 0.
#include <cctype>

#include "rewards/builtin/builtin.h"
#include "rewards/builtin/text.h"

namespace tandem::rewards {
namespace {

std::string without_punctuation(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (std::ispunct(static_cast<unsigned char>(c)) == 0) {
      kept += c;
    }
  }
  return kept;
}

}  // namespace

BuiltinScore make_exact_match(Options& options) {
  const bool strip_punctuation = options.flag("strip_punctuation", false);
  const bool last = options.flag("last_line", false);
  return [=](const RewardSample& sample) -> std::optional<double> {
    const std::string_view answer = last ? last_line(sample.completion) : trim(sample.completion);
    const std::string_view truth = trim(sample.ground_truth);
    if (truth.empty()) {
      return std::nullopt;  // nothing to compare with
    }
    const bool equal = strip_punctuation
                           ? trim(without_punctuation(answer)) == trim(without_punctuation(truth))
                           : answer == truth;
    return equal ? 1.0 : 0.0;
  };
}

}  // namespace tandem::rewards
