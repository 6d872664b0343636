// The trainer's side of one reward worker: calls it, and replaces it when it fails.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "rewards/process/channel.h"
#include "rewards/process/messages.h"
#include "rewards/process/spawner.h"
#include "rewards/reward.h"

namespace tandem::rewards {

/// One reward function in a worker process. Not thread safe; different clients may run at a time.
class WorkerClient {
 public:
  /// Starts worker `index` of `spawner` and returns at once; both references must outlive this.
  WorkerClient(const RewardConfig& config, Spawner& spawner, int index);
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;
  ~WorkerClient();

  /// Waits until the worker has loaded its function. Throws UserError or MachineError with its
  /// reason when it could not.
  void wait_until_loaded();

  /// One Score a sample. Never throws for what the function does: each failure costs its sample.
  std::vector<Score> score(std::span<const RewardSample> samples, std::int64_t step);

  [[nodiscard]] std::int64_t restarts() const { return restarts_; }

 private:
  // The scores of one call, or why it failed as a whole.
  struct Outcome {
    std::vector<Score> scores;
    std::string failure;
  };

  void start();
  Outcome call(std::span<const RewardSample> samples, std::int64_t step);
  std::string revive();
  std::string give_up(ChannelState state, const std::string& timeout);
  WorkerReply receive_loaded();

  const RewardConfig& config_;
  Spawner& spawner_;
  const int index_;
  const Encoding& encoding_;
  pid_t pid_ = -1;  // -1: no worker runs
  std::unique_ptr<Channel> channel_;
  bool batched_ = false;
  std::int64_t restarts_ = 0;
};

}  // namespace tandem::rewards
