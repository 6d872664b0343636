// length: the soft overlong penalty of DAPO on the number of completion tokens.
//
//   0                            up to max - buffer
//   (max - buffer - n) / buffer  up to max
//   -1                           beyond
//
// Source: Yu et al., "DAPO", arXiv:2503.14476, eq. 13. verl has no lower end; TRL and this have.
#include "rewards/builtin/builtin.h"

namespace tandem::rewards {

BuiltinScore make_length(Options& options) {
  const std::int64_t max = options.integer("max", 0, 1);
  const std::int64_t buffer = options.integer("buffer", 0, 1);
  if (buffer > max) {
    options.refuse("option buffer is larger than max");
  }
  return [=](const RewardSample& sample) -> std::optional<double> {
    const auto length = static_cast<std::int64_t>(sample.completion_ids.size());
    if (length <= max - buffer) {
      return 0.0;
    }
    return length > max ? -1.0 : static_cast<double>(max - buffer - length) / buffer;
  };
}

}  // namespace tandem::rewards
