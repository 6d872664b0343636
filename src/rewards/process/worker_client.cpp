#include "rewards/process/worker_client.h"

#include "base/error.h"
#include "base/log.h"
#include "rewards/function.h"

namespace tandem::rewards {
namespace {

using Clock = std::chrono::steady_clock;

// Loading may import large Python packages from a slow disk.
constexpr std::chrono::seconds kLoadTime(120);

}  // namespace

WorkerClient::WorkerClient(const RewardConfig& config, Spawner& spawner, int index)
    : config_(config),
      spawner_(spawner),
      index_(index),
      encoding_(config.kind == "python" ? kJsonEncoding : kBinaryEncoding) {
  start();
}

WorkerClient::~WorkerClient() {
  channel_.reset();  // tells the worker to end by itself
  try {
    if (pid_ >= 0) {
      spawner_.stop(pid_, /*grace=*/true);
    }
  } catch (const std::exception& error) {
    TANDEM_LOG(warn, "reward {}: {}", config_.name, error.what());
  }
}

void WorkerClient::start() {
  SpawnedWorker worker = spawner_.start(index_);
  pid_ = worker.pid;
  channel_ = std::make_unique<Channel>(std::move(worker.socket), encoding_.framing);
}

// Ends the worker after a failed exchange and says what became of it.
std::string WorkerClient::give_up(ChannelState state, const std::string& timeout) {
  channel_.reset();
  // A worker that closed its socket is about to end, and its exit status is worth a moment.
  const bool grace = state == ChannelState::kClosed;
  const int status = spawner_.stop(std::exchange(pid_, -1), grace);
  return state == ChannelState::kTimedOut ? timeout : describe_wait_status(status);
}

WorkerReply WorkerClient::receive_loaded() {
  std::string message;
  const ChannelState state = channel_->receive(message, Clock::now() + kLoadTime);
  if (state != ChannelState::kOk) {
    const std::string& file = config_.library.empty() ? config_.file : config_.library;
    WorkerReply reply;
    reply.error =
        fmt::format("reward {}: {}: {} while it was loaded",
                    config_.name,
                    file,
                    give_up(state, fmt::format("did not answer within {} s", kLoadTime.count())));
    return reply;
  }
  return encoding_.decode(message);
}

void WorkerClient::wait_until_loaded() {
  const WorkerReply reply = receive_loaded();
  if (!reply.error.empty() && reply.machine) {
    fail<MachineError>("{}", reply.error);
  }
  if (!reply.error.empty()) {
    const bool named = reply.error.find(config_.name) != std::string::npos;
    fail<UserError>("{}{}", named ? "" : fmt::format("reward {}: ", config_.name), reply.error);
  }
  batched_ = reply.batched;
}

// Starts a new worker where none runs. Returns why that failed, else nothing.
std::string WorkerClient::revive() {
  if (pid_ >= 0) {
    return "";
  }
  ++restarts_;
  start();
  const WorkerReply reply = receive_loaded();
  if (!reply.error.empty() && pid_ >= 0) {
    return give_up(ChannelState::kTimedOut, reply.error);
  }
  return reply.error;
}

WorkerClient::Outcome WorkerClient::call(std::span<const RewardSample> samples, std::int64_t step) {
  if (const std::string failure = revive(); !failure.empty()) {
    return {{}, failure};
  }
  const WorkerRequest request{step, config_.timeout_ms, {samples.begin(), samples.end()}};
  const auto deadline = Clock::now() + std::chrono::milliseconds(config_.timeout_ms);
  std::string message;
  ChannelState state = channel_->send(encoding_.encode(request), deadline);
  if (state == ChannelState::kOk) {
    state = channel_->receive(message, deadline);
  }
  if (state != ChannelState::kOk) {
    return {{}, give_up(state, fmt::format("no answer within {} ms", config_.timeout_ms))};
  }
  try {
    WorkerReply reply = encoding_.decode(message);
    if (!reply.error.empty()) {
      return {{}, reply.error};
    }
    return {checked(std::move(reply.scores), samples.size()), ""};
  } catch (const Error& error) {
    // Its memory may be damaged, so nothing that it says counts any more.
    return {{}, give_up(ChannelState::kTimedOut, fmt::format("sent {}", error.what()))};
  }
}

std::vector<Score> WorkerClient::score(std::span<const RewardSample> samples, std::int64_t step) {
  if (batched_ && samples.size() > 1) {
    Outcome outcome = call(samples, step);
    if (outcome.failure.empty()) {
      return std::move(outcome.scores);
    }
    // One by one from here on, so that a sample which cannot be scored costs only itself.
    TANDEM_LOG(debug, "reward {}: batch of {}: {}", config_.name, samples.size(), outcome.failure);
  }
  std::vector<Score> scores;
  for (const RewardSample& sample : samples) {
    Outcome outcome = call({&sample, 1}, step);
    if (outcome.failure.empty()) {
      scores.push_back(std::move(outcome.scores.front()));
    } else {
      scores.emplace_back().failure = std::move(outcome.failure);
    }
  }
  return scores;
}

}  // namespace tandem::rewards
