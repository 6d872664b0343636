// What the trainer and a reward worker say to each other, and its two encodings.
#pragma once

#include <string>
#include <vector>

#include "rewards/process/channel.h"
#include "rewards/reward.h"

namespace tandem::rewards {

/// A call of the worker's function.
struct WorkerRequest {
  std::int64_t step = 0;
  std::int64_t deadline_ms = 0;
  std::vector<RewardSample> samples;
};

/// What a worker answers: once after it has loaded its function, then once a request.
struct WorkerReply {
  std::string error;     // why the call, or the loading, failed as a whole
  bool machine = false;  // the error is the machine's, not the user's
  bool batched = false;  // told after loading: takes many samples at once
  std::vector<Score> scores;
};

/// One of the two encodings. Decoding throws Error for what is no message.
struct Encoding {
  Framing framing;
  std::string (*encode)(const WorkerRequest& request);
  WorkerReply (*decode)(const std::string& message);
};

/// cereal's portable binary, for C++ workers; also the worker's side of it.
extern const Encoding kBinaryEncoding;
WorkerRequest decode_request(const std::string& message);
std::string encode_reply(const WorkerReply& reply);

/// JSON lines, for Python workers. Bytes that are not UTF-8 become U+FFFD.
extern const Encoding kJsonEncoding;

}  // namespace tandem::rewards
