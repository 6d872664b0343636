#include "rewards/process/worker_main.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "base/error.h"
#include "rewards/function.h"
#include "rewards/process/messages.h"

namespace tandem::rewards {
namespace {

constexpr int kPythonSocket = 3;  // where the script expects it

WorkerReply answer(RewardFunction& function, const WorkerRequest& request) {
  WorkerReply reply;
  try {
    reply.scores = checked(function.score(request.samples, request.step, request.deadline_ms),
                           request.samples.size());
  } catch (const std::exception& error) {
    reply.error = error.what();
  } catch (...) {
    reply.error = "an exception that is not a std::exception";
  }
  return reply;
}

std::unique_ptr<RewardFunction> load(const RewardConfig& config, WorkerReply& reply) {
  try {
    auto function = load_function(config);
    reply.batched = function->batched();
    return function;
  } catch (const std::exception& error) {
    reply.error = error.what();
    return nullptr;
  }
}

}  // namespace

int run_native_worker(const RewardConfig& config, int socket) {
  WorkerReply loaded;
  const auto function = load(config, loaded);
  if (!write_frame(socket, encode_reply(loaded)) || !function) {
    return 1;
  }
  std::string message;
  while (read_frame(socket, message)) {
    if (!write_frame(socket, encode_reply(answer(*function, decode_request(message))))) {
      return 1;
    }
  }
  return 0;
}

int run_python_worker(const RewardConfig& config, int socket) {
  // dup2 also drops close-on-exec, unless the number is the same already.
  if (socket == kPythonSocket) {
    socket = ::dup(socket);
  }
  if (::dup2(socket, kPythonSocket) < 0) {
    return 1;
  }
  ::close(socket);
  ::execlp("python3",
           "python3",
           "-c",
           kPythonWorkerScript,
           config.file.c_str(),
           config.function.c_str(),
           config.options.c_str(),
           static_cast<char*>(nullptr));
  const std::string line = fmt::format(
      "{{\"machine\": true, \"error\": \"reward {}: needs python3, which cannot be started: "
      "{}\"}}\n",
      config.name,
      std::strerror(errno));
  return ::write(kPythonSocket, line.data(), line.size()) > 0 ? 1 : 2;
}

}  // namespace tandem::rewards
