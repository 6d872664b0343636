// What happens to a sample on which a reward function failed.
#pragma once

#include <optional>
#include <string>

#include "rewards/reward.h"

namespace tandem::rewards {

/// `on_failure`, read.
struct Policy {
  bool stop = false;           // "error"
  std::optional<double> fill;  // a number
};

/// The whole of `text` as a finite number.
std::optional<double> finite_number(const std::string& text);

/// Throws UserError where `on_failure` is none of its words and no number.
Policy parse_policy(const RewardConfig& config);

}  // namespace tandem::rewards
