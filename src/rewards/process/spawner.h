// Starts worker processes from a small process that was forked before any thread existed.
#pragma once

#include <functional>
#include <mutex>

#include <sys/types.h>

#include "rewards/process/file_descriptor.h"

namespace tandem::rewards {

struct SpawnedWorker {
  pid_t pid = -1;
  FileDescriptor socket;  // our end of a stream socket; the worker has the other
};

/// The parent's handle of the spawner process. Thread safe.
///
/// A fork of a process with threads may deadlock in the child, so workers that are started late,
/// after a crash, must not come from the trainer. The spawner does nothing but fork, kill and reap,
/// so no zombie stays. It sits in a process group of its own, as each worker does: a Ctrl-C at the
/// terminal reaches the trainer alone. When the trainer ends, however it ends, the spawner kills
/// all workers and ends too; when the spawner is killed, the kernel kills the workers.
class Spawner {
 public:
  /// Runs in a new worker with its index and its end of the socket. What it returns is the exit
  /// status; what it throws is written to standard error.
  using Body = std::function<int(int index, int socket)>;

  /// Forks the spawner. Standard output of all workers is our standard error. Throws MachineError.
  explicit Spawner(const Body& body);
  Spawner(const Spawner&) = delete;
  Spawner& operator=(const Spawner&) = delete;
  ~Spawner();

  /// Forks a worker. Throws MachineError where the system refuses, Error when the spawner is gone.
  SpawnedWorker start(int index);

  /// Ends the worker and all of its process group, and returns its wait status. With `grace` it
  /// first has a second to end by itself, which it does when its socket is closed.
  int stop(pid_t pid, bool grace);

 private:
  std::mutex mutex_;  // guards control_
  FileDescriptor control_;
  pid_t pid_ = -1;
};

/// "crashed with signal 11 (Segmentation fault)", "exited with status 3".
std::string describe_wait_status(int status);

}  // namespace tandem::rewards
