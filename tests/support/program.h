// Runs the program `tandem` as a user does: a process with its own output and exit status.
//
// The build gives TANDEM_PROGRAM, its path.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "support/temporary_folder.h"

namespace tandem::test {

struct ProgramResult {
  int status = -1;  // exit status, or 128 + signal as a shell reports it
  std::string out;
  std::string err;

  /// Lines on standard error.
  [[nodiscard]] std::int64_t num_error_lines() const {
    return std::count(err.begin(), err.end(), '\n');
  }
};

/// A running program; its output goes to files in a folder of its own.
class Program {
 public:
  /// `prepare` runs in the child before the program starts, for limits.
  explicit Program(std::vector<std::string> words, const std::function<void()>& prepare = {}) {
    words.insert(words.begin(), TANDEM_PROGRAM);
    std::vector<char*> argv;
    for (auto& word : words) {
      argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    const std::string out = (folder_ / "out").string();
    const std::string err = (folder_ / "err").string();
    pid_ = ::fork();
    if (pid_ == 0) {
      if (prepare) {
        prepare();
      }
      ::dup2(::open(out.c_str(), O_CREAT | O_WRONLY, 0600), STDOUT_FILENO);
      ::dup2(::open(err.c_str(), O_CREAT | O_WRONLY, 0600), STDERR_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program() {
    if (!waited_) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
  }

  void send(int signal) const { ::kill(pid_, signal); }

  [[nodiscard]] bool running() {
    if (!waited_ && ::waitpid(pid_, &wait_status_, WNOHANG) == pid_) {
      waited_ = true;
    }
    return !waited_;
  }

  /// Waits until `happened()` holds; false when the program ended before.
  bool wait_until(const std::function<bool()>& happened) {
    while (!happened()) {
      if (!running()) {
        return happened();
      }
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return true;
  }

  ProgramResult finish() {
    if (!waited_) {
      ::waitpid(pid_, &wait_status_, 0);
      waited_ = true;
    }
    return {.status =
                WIFEXITED(wait_status_) ? WEXITSTATUS(wait_status_) : 128 + WTERMSIG(wait_status_),
            .out = read_file(folder_ / "out"),
            .err = read_file(folder_ / "err")};
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  int wait_status_ = 0;
  bool waited_ = false;
};

inline ProgramResult run_program(std::vector<std::string> words,
                                 const std::function<void()>& prepare = {}) {
  return Program(std::move(words), prepare).finish();
}

/// The same for arguments without blanks inside.
inline ProgramResult run_program(const std::string& arguments,
                                 const std::function<void()>& prepare = {}) {
  std::istringstream in(arguments);
  return run_program(std::vector<std::string>(std::istream_iterator<std::string>(in), {}), prepare);
}

}  // namespace tandem::test
