// Worker messages as JSON lines, for the Python worker.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "rewards/process/messages.h"

namespace tandem::rewards {
namespace {

using nlohmann::json;

json json_of(const RewardSample& sample) {
  json messages = json::array();
  for (const Message& message : sample.messages) {
    messages.push_back({{"role", message.role}, {"content", message.content}});
  }
  json columns = json::parse(sample.columns_json, nullptr, /*allow_exceptions=*/false);
  if (!columns.is_object()) {
    columns = json::object();
  }
  return {{"id", sample.id},
          {"prompt", sample.prompt_text},
          {"messages", std::move(messages)},
          {"completion", sample.completion},
          {"completion_ids", sample.completion_ids},
          {"ground_truth", sample.ground_truth},
          {"columns", std::move(columns)},
          {"finish_reason", sample.finish_reason}};
}

std::string encode(const WorkerRequest& request) {
  json samples = json::array();
  for (const RewardSample& sample : request.samples) {
    samples.push_back(json_of(sample));
  }
  const json message = {{"step", request.step}, {"samples", std::move(samples)}};
  return message.dump(-1, ' ', /*ensure_ascii=*/false, json::error_handler_t::replace);
}

Score score_of(const json& value) {
  Score score;
  if (value.at("value").is_number()) {
    score.value = value.at("value").get<double>();
  }
  score.failure = value.at("failure").get<std::string>();
  score.extra = value.at("extra").get<std::map<std::string, std::string>>();
  score.metrics = value.at("metrics").get<std::map<std::string, double>>();
  return score;
}

WorkerReply decode(const std::string& message) {
  WorkerReply reply;
  try {
    const json value = json::parse(message);
    reply.error = value.value("error", "");
    reply.machine = value.value("machine", false);
    reply.batched = value.value("batched", false);
    for (const json& score : value.value("scores", json::array())) {
      reply.scores.push_back(score_of(score));
    }
  } catch (const json::exception& error) {
    fail("a message that cannot be read ({})", error.what());
  }
  return reply;
}

}  // namespace

const Encoding kJsonEncoding = {.framing = Framing::kLine, .encode = encode, .decode = decode};

}  // namespace tandem::rewards
