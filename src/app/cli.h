// The command line: `tandem COMMAND options`. CLI11 stays behind cli.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tandem::app {

/// The options of one command, bound to variables that outlive the parsing.
///
/// Numbers are read as in recipes ("1e3" is a whole number); what does not fit is a UserError that
/// names the option.
class CommandLine {
 public:
  struct Impl;
  explicit CommandLine(Impl& impl) : impl_(impl) {}

  // An option "--name VALUE"; the variable keeps its value where the option is not given.
  void add(const std::string& name, std::string& value, const std::string& help);
  void add(const std::string& name, std::int64_t& value, const std::string& help);
  void add(const std::string& name, double& value, const std::string& help);
  void add(const std::string& name, std::optional<std::int64_t>& value, const std::string& help);
  void add(const std::string& name, std::optional<double>& value, const std::string& help);

  /// May be given several times.
  void add(const std::string& name, std::vector<std::string>& values, const std::string& help);

  /// "--name" without a value.
  void flag(const std::string& name, bool& value, const std::string& help);

  /// Must be given.
  void need(const std::string& name, std::string& value, const std::string& help);

  /// A word without "--", in the order of the calls.
  void word(const std::string& name, std::string& value, const std::string& help);
  void need_word(const std::string& name, std::string& value, const std::string& help);

  /// All words that are left.
  void words(const std::string& name, std::vector<std::string>& values, const std::string& help);

  /// What the command does; returns the exit status.
  void run(std::function<int()> action);

 private:
  Impl& impl_;
};

/// One row of the table of commands: adding a command is one file and one row.
struct Command {
  const char* name;
  const char* help;
  void (*set_up)(CommandLine& line);
};

/// --threads, --isa, --arithmetic and --json, which all commands that compute take.
struct CommonOptions {
  std::int64_t threads = 0;  // 0: all cores
  std::string isa = "auto";
  std::string arithmetic = "auto";
  std::string json;  // a file for the results, "-" for standard output, or empty
};
void add_common_options(CommandLine& line, CommonOptions& options);

/// Parses the words behind the program's name, runs the command, and returns the exit status: 0,
/// what the command returns, or by exception 2 (UserError), 3 (MachineError, no memory), 1
/// (others), with one line on standard error.
int run_command_line(std::span<const Command> commands, const std::vector<std::string>& words);

}  // namespace tandem::app
