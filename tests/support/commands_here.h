// Runs a command inside the test's own process: for the many cases that end before any work.
#pragma once

#include <cstdio>
#include <string>

#include <fcntl.h>
#include <unistd.h>

#include "app/command_table.h"
#include "support/program.h"

namespace tandem::test {

/// Sends one of the process's outputs into a file for as long as it lives.
class Redirected {
 public:
  Redirected(int descriptor, const std::filesystem::path& file)
      : descriptor_(descriptor), saved_(::dup(descriptor)) {
    std::fflush(nullptr);
    const int target = ::open(file.c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(target, descriptor_);
    ::close(target);
  }
  Redirected(const Redirected&) = delete;
  Redirected& operator=(const Redirected&) = delete;
  ~Redirected() {
    std::fflush(nullptr);
    ::dup2(saved_, descriptor_);
    ::close(saved_);
  }

 private:
  int descriptor_;
  int saved_;
};

/// What `run_program` gives, without a process of its own.
inline ProgramResult run_here(const std::string& arguments) {
  const TemporaryFolder folder;
  ProgramResult result;
  {
    const Redirected out(STDOUT_FILENO, folder / "out");
    const Redirected err(STDERR_FILENO, folder / "err");
    std::istringstream in(arguments);
    result.status =
        app::run_command_line(app::all_commands(), {std::istream_iterator<std::string>(in), {}});
  }
  result.out = read_file(folder / "out");
  result.err = read_file(folder / "err");
  return result;
}

}  // namespace tandem::test
