// Reward functions of shared objects, loaded by the ABI of include/tandem/reward.h.
#pragma once

#include <memory>

#include "rewards/function.h"

namespace tandem::rewards {

/// Loads `config.library` and makes its function. Throws UserError naming the file.
std::unique_ptr<RewardFunction> load_library_function(const RewardConfig& config);

/// Whether the function said that it must not be called from two threads at a time.
bool is_thread_safe(const RewardFunction& function);

}  // namespace tandem::rewards
