// The table of built-in rewards: a row here and a file beside this one make a new kind.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "rewards/function.h"
#include "rewards/options.h"

namespace tandem::rewards {

/// Scores one sample; nothing where the reward does not apply.
using BuiltinScore = std::function<std::optional<double>(const RewardSample& sample)>;

/// Each reads its options and returns the function that scores.
BuiltinScore make_exact_match(Options& options);
BuiltinScore make_gsm8k(Options& options);
BuiltinScore make_length(Options& options);
BuiltinScore make_math(Options& options);
BuiltinScore make_regex(Options& options);

/// Throws UserError for an unknown kind or option.
std::unique_ptr<RewardFunction> make_builtin(const RewardConfig& config);

}  // namespace tandem::rewards
