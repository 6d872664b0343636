// Workers leave nothing behind: no zombie, no descriptor, no orphan.
#include <csignal>
#include <filesystem>
#include <thread>

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rewards/process/channel.h"
#include "rewards/process/spawner.h"
#include "rewards/reward.h"
#include "rewards/reward_library.h"

namespace tandem::rewards::test {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    count += entry.is_symlink() ? 1 : 0;
  }
  return count;
}

RewardConfig length_config(const std::string& name) {
  RewardConfig config;
  config.name = name;
  config.kind = "length";
  config.options = R"({"max": 100, "buffer": 20})";
  return config;
}

// Waits until the kernel says that the process is gone; false after ten seconds.
bool wait_until_gone(pid_t pid) {
  const FileDescriptor handle(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (handle.get() < 0) {
    return ::kill(pid, 0) != 0;
  }
  pollfd entry{handle.get(), POLLIN, 0};
  return ::poll(&entry, 1, 10'000) == 1;
}

TEST_CASE("a reward set closes its descriptors and reaps its children") {
  const std::size_t before = open_descriptors();
  {
    RewardSet rewards({length_config("a"), length_config("b"), length_config("c")});
    CHECK(rewards.score(make_samples(3), 1)[2][0].value == 0.0);
    CHECK(open_descriptors() > before);
  }
  CHECK(open_descriptors() == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);  // no child, hence no zombie
  CHECK(errno == ECHILD);
}

TEST_CASE("a refused reward set leaves nothing either") {
  const std::size_t before = open_descriptors();
  RewardConfig wrong = length_config("b");
  wrong.options = R"({"max": 100, "bufer": 20})";
  CHECK(contains(error_of<UserError>([&] {
                   RewardSet rewards({length_config("a"), wrong});
                 }),
                 "reward b: option buffer is required"));
  CHECK(open_descriptors() == before);
  CHECK(::waitpid(-1, nullptr, WNOHANG) == -1);
}

// A worker that answers each frame with its process id.
int tell_pid(int, int socket) {
  std::string message;
  while (read_frame(socket, message)) {
    if (!write_frame(socket, std::to_string(::getpid()))) {
      return 1;
    }
  }
  return 0;
}

TEST_CASE("workers are told apart, stopped with and without grace, and reaped") {
  Spawner spawner(tell_pid);
  SpawnedWorker first = spawner.start(0);
  SpawnedWorker second = spawner.start(1);
  CHECK(first.pid != second.pid);
  const int status = spawner.stop(first.pid, /*grace=*/false);
  CHECK(describe_wait_status(status) == "crashed with signal 9 (Killed)");
  second.socket = FileDescriptor();
  CHECK(describe_wait_status(spawner.stop(second.pid, /*grace=*/true)) == "exited with status 0");
  CHECK(::kill(first.pid, 0) != 0);
  CHECK(::kill(second.pid, 0) != 0);
}

TEST_CASE("workers sit in process groups of their own and ignore Ctrl-C") {
  Spawner spawner(tell_pid);
  SpawnedWorker worker = spawner.start(0);
  Channel channel(std::move(worker.socket), Framing::kLength);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::string reply;
  REQUIRE(channel.send("?", deadline) == ChannelState::kOk);
  REQUIRE(channel.receive(reply, deadline) == ChannelState::kOk);
  CHECK(reply == std::to_string(worker.pid));
  CHECK(::getpgid(worker.pid) == worker.pid);
  REQUIRE(::kill(worker.pid, SIGINT) == 0);
  REQUIRE(channel.send("?", deadline) == ChannelState::kOk);
  CHECK(channel.receive(reply, deadline) == ChannelState::kOk);
}

TEST_CASE("a message larger than any socket buffer passes, and a silent worker is a timeout") {
  const Spawner::Body echo_then_sleep = [](int, int socket) {
    std::string message;
    read_frame(socket, message);
    write_frame(socket, message);
    ::pause();
    return 0;
  };
  Spawner spawner(echo_then_sleep);
  SpawnedWorker worker = spawner.start(0);
  Channel channel(std::move(worker.socket), Framing::kLength);
  const std::string large(64u << 20, 'y');
  const auto now = [] { return std::chrono::steady_clock::now(); };
  std::string reply;
  REQUIRE(channel.send(large, now() + std::chrono::seconds(60)) == ChannelState::kOk);
  REQUIRE(channel.receive(reply, now() + std::chrono::seconds(60)) == ChannelState::kOk);
  CHECK((reply == large));
  CHECK(channel.receive(reply, now() + std::chrono::milliseconds(50)) == ChannelState::kTimedOut);
  CHECK(channel.send("x", now() + std::chrono::seconds(1)) == ChannelState::kClosed);
  spawner.stop(worker.pid, /*grace=*/false);
}

// Runs a process that builds a reward worker, reports its pid and is then killed outright.
TEST_CASE("workers die with the trainer, even when it is killed") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const FileDescriptor read_end(ends[0]);
  FileDescriptor write_end(ends[1]);
  const pid_t trainer = ::fork();
  REQUIRE(trainer >= 0);
  if (trainer == 0) {
    Spawner spawner(tell_pid);
    const SpawnedWorker worker = spawner.start(0);
    const bool written = ::write(write_end.get(), &worker.pid, sizeof(pid_t)) == sizeof(pid_t);
    ::pause();
    ::_exit(written ? 0 : 1);
  }
  write_end = FileDescriptor();
  pid_t worker = -1;
  REQUIRE(::read(read_end.get(), &worker, sizeof(worker)) == sizeof(worker));
  CHECK(::kill(worker, 0) == 0);
  REQUIRE(::kill(trainer, SIGKILL) == 0);
  REQUIRE(::waitpid(trainer, nullptr, 0) == trainer);
  CHECK(wait_until_gone(worker));
}

TEST_CASE("what a reward started is stopped with it") {
  // Its child would keep the socket open and the crash unnoticed, were it not in the same group.
  const Spawner::Body with_child = [](int, int socket) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
    }
    write_frame(socket, std::to_string(child));
    ::pause();
    return 0;
  };
  Spawner spawner(with_child);
  SpawnedWorker worker = spawner.start(0);
  Channel channel(std::move(worker.socket), Framing::kLength);
  std::string reply;
  REQUIRE(channel.receive(reply, std::chrono::steady_clock::now() + std::chrono::seconds(20)) ==
          ChannelState::kOk);
  spawner.stop(worker.pid, /*grace=*/false);
  CHECK(wait_until_gone(std::stoi(reply)));
}

}  // namespace
}  // namespace tandem::rewards::test
