// Worker messages by cereal.
#include <sstream>

#include <cereal/archives/binary.hpp>
#include <cereal/types/map.hpp>
#include <cereal/types/optional.hpp>
#include <cereal/types/string.hpp>
#include <cereal/types/vector.hpp>

#include "base/error.h"
#include "rewards/process/messages.h"

namespace tandem {

template <class Archive>
void serialize(Archive& archive, Message& message) {
  archive(message.role, message.content);
}

}  // namespace tandem

namespace tandem::rewards {

// Found by argument-dependent lookup, hence not in the unnamed namespace.
template <class Archive>
void serialize(Archive& archive, RewardSample& sample) {
  archive(sample.id,
          sample.prompt_text,
          sample.messages,
          sample.completion,
          sample.completion_ids,
          sample.ground_truth,
          sample.columns_json,
          sample.finish_reason);
}

template <class Archive>
void serialize(Archive& archive, Score& score) {
  archive(score.value, score.failure, score.extra, score.metrics);
}

template <class Archive>
void serialize(Archive& archive, WorkerRequest& request) {
  archive(request.step, request.deadline_ms, request.samples);
}

template <class Archive>
void serialize(Archive& archive, WorkerReply& reply) {
  archive(reply.error, reply.machine, reply.batched, reply.scores);
}

namespace {

template <class T>
std::string to_bytes(const T& message) {
  std::ostringstream stream;
  cereal::BinaryOutputArchive archive(stream);
  archive(message);
  return std::move(stream).str();
}

template <class T>
T from_bytes(const std::string& bytes) {
  T message;
  try {
    std::istringstream stream(bytes);
    cereal::BinaryInputArchive archive(stream);
    archive(message);
  } catch (const std::exception& error) {
    fail("a message that cannot be read ({})", error.what());
  }
  return message;
}

}  // namespace

WorkerRequest decode_request(const std::string& message) {
  return from_bytes<WorkerRequest>(message);
}

std::string encode_reply(const WorkerReply& reply) {
  return to_bytes(reply);
}

const Encoding kBinaryEncoding = {
    .framing = Framing::kLength,
    .encode = [](const WorkerRequest& request) { return to_bytes(request); },
    .decode = [](const std::string& message) { return from_bytes<WorkerReply>(message); },
};

}  // namespace tandem::rewards
