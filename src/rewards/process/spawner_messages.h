// What the spawner and its parent say to each other, and how descriptors travel along.
#pragma once

#include <cstdint>

#include "rewards/process/file_descriptor.h"

namespace tandem::rewards {

enum class SpawnerCommand : std::int32_t { kStart, kStop, kStopWithGrace };

struct SpawnerRequest {
  SpawnerCommand command = SpawnerCommand::kStart;
  std::int32_t argument = 0;  // index for kStart, pid otherwise
};

struct SpawnerReply {
  std::int32_t value = 0;  // pid for kStart, or -errno; wait status otherwise
};

/// Sends `reply` and, where it is not negative, a descriptor. False when the other end is gone.
bool send_reply(int control, const SpawnerReply& reply, int descriptor);

/// False when the other end is gone.
bool receive_reply(int control, SpawnerReply& reply, FileDescriptor& descriptor);

}  // namespace tandem::rewards
