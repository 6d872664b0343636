// Requests and replies over a worker's socket, each with a deadline.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "rewards/process/file_descriptor.h"

namespace tandem::rewards {

/// How one message ends and the next begins.
enum class Framing {
  kLength,  // 8 bytes of length, native order, then the message
  kLine,    // the message, without line breaks, then a line break
};

enum class ChannelState { kOk, kTimedOut, kClosed };

/// The trainer's end of a worker's socket. Not thread safe.
///
/// After kTimedOut or kClosed the channel is closed and the worker must be stopped.
class Channel {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Channel(FileDescriptor socket, Framing framing);
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  [[nodiscard]] ChannelState send(std::string_view message, Deadline deadline);
  [[nodiscard]] ChannelState receive(std::string& message, Deadline deadline);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The worker's side of Framing::kLength, which waits without end. False when the parent is gone.
bool read_frame(int socket, std::string& message);
bool write_frame(int socket, std::string_view message);

/// Longest message; a length beyond it means that memory was overwritten.
inline constexpr std::uint64_t kMaxFrameBytes = 1ull << 32;

}  // namespace tandem::rewards
