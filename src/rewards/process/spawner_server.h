// The spawner's own side: a loop that forks, kills and reaps workers.
#pragma once

#include "rewards/process/spawner.h"

namespace tandem::rewards {

/// Serves requests on `control` until its other end or the process `parent` is gone, then kills all
/// workers. To be called in a fresh process without threads; returns the exit status.
int serve_spawner(int control, pid_t parent, const Spawner::Body& body);

/// Ends this process at once: no handlers, no destructors of the parent's objects.
[[noreturn]] void leave_process(int status);

}  // namespace tandem::rewards
