// Runs the program as users do, and says what came of it.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include <sys/wait.h>

#include "support/temporary_folder.h"

namespace tandem::test {

struct ProgramResult {
  int status = -1;  // exit status; 128 + n for a signal
  std::string out;
  std::string err;

  /// Lines on standard error.
  [[nodiscard]] long num_error_lines() const { return std::count(err.begin(), err.end(), '\n'); }
};

/// Runs `tandem ARGUMENTS` through the shell in the project's root.
inline ProgramResult run_program(const std::string& arguments) {
  const TemporaryFolder folder;
  const std::string command = std::string(TANDEM_PROGRAM) + " " + arguments + " >" +
                              (folder / "out").string() + " 2>" + (folder / "err").string();
  const int code = std::system(command.c_str());
  const auto read = [&](const char* name) {
    std::ifstream in(folder / name);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  ProgramResult result;
  result.status = WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
  result.out = read("out");
  result.err = read("err");
  return result;
}

}  // namespace tandem::test
