#include "rewards/policy.h"

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "rewards/options.h"

namespace tandem::rewards {

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

Policy parse_policy(const RewardConfig& config) {
  Policy policy;
  policy.stop = config.on_failure == "error";
  policy.fill = finite_number(config.on_failure);
  if (!policy.stop && !policy.fill && config.on_failure != "none" &&
      config.on_failure != "drop_group") {
    fail<UserError>("reward {}: on_failure is '{}', not error, none, drop_group or a number{}",
                    config.name,
                    config.on_failure,
                    did_you_mean(config.on_failure, {"error", "none", "drop_group"}));
  }
  return policy;
}

}  // namespace tandem::rewards
