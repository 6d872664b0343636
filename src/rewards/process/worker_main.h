// What runs inside a reward worker.
#pragma once

#include "rewards/reward.h"

namespace tandem::rewards {

/// Loads a built-in or library function, says so on `socket`, and answers requests until the
/// other end is closed. Returns the exit status.
int run_native_worker(const RewardConfig& config, int socket);

/// Becomes a python3 that loads the config's file and answers requests. Returns only on failure.
int run_python_worker(const RewardConfig& config, int socket);

/// The program of the Python worker.
extern const char* const kPythonWorkerScript;

}  // namespace tandem::rewards
