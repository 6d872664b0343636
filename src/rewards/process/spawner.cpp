#include "rewards/process/spawner.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <sys/socket.h>
#include <sys/wait.h>

#include "base/error.h"
#include "rewards/process/spawner_messages.h"
#include "rewards/process/spawner_server.h"

namespace tandem::rewards {
namespace {

SpawnerReply ask(int control, const SpawnerRequest& request, FileDescriptor& descriptor) {
  ssize_t sent = 0;
  do {
    sent = ::send(control, &request, sizeof(request), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  SpawnerReply reply;
  TANDEM_CHECK(
      sent == static_cast<ssize_t>(sizeof(request)) && receive_reply(control, reply, descriptor),
      "the process that starts reward workers is gone; was it killed for memory?");
  return reply;
}

}  // namespace

Spawner::Spawner(const Body& body) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    fail<MachineError>("reward workers: no socket: {}", std::strerror(errno));
  }
  control_ = FileDescriptor(ends[0]);
  const FileDescriptor theirs(ends[1]);
  std::fflush(nullptr);  // what is buffered would be written by both processes
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) {
    fail<MachineError>("reward workers: cannot fork: {}", std::strerror(errno));
  }
  if (pid_ == 0) {
    leave_process(serve_spawner(theirs.get(), parent, body));
  }
}

Spawner::~Spawner() {
  control_ = FileDescriptor();
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

SpawnedWorker Spawner::start(int index) {
  const std::lock_guard<std::mutex> lock(mutex_);
  SpawnedWorker worker;
  const SpawnerReply reply = ask(control_.get(), {SpawnerCommand::kStart, index}, worker.socket);
  if (reply.value < 0) {
    fail<MachineError>("reward workers: cannot start one: {}", std::strerror(-reply.value));
  }
  worker.pid = reply.value;
  return worker;
}

int Spawner::stop(pid_t pid, bool grace) {
  const std::lock_guard<std::mutex> lock(mutex_);
  FileDescriptor none;
  const auto command = grace ? SpawnerCommand::kStopWithGrace : SpawnerCommand::kStop;
  return ask(control_.get(), {command, pid}, none).value;
}

std::string describe_wait_status(int status) {
  if (WIFSIGNALED(status)) {
    return fmt::format(
        "crashed with signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)));
  }
  return fmt::format("exited with status {}", WEXITSTATUS(status));
}

}  // namespace tandem::rewards
