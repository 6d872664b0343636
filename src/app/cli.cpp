#include "app/cli.h"

#include <algorithm>
#include <cstdio>
#include <new>

#include <CLI/CLI.hpp>

#include "app/version.h"
#include "base/error.h"
#include "config/convert.h"
#include "config/scalars.h"
#include "config/suggest.h"

namespace tandem::app {

struct CommandLine::Impl {
  CLI::App* app;
  std::function<int()> action;
};

namespace {

double to_number(const std::string& name, const std::string& text) {
  const auto value = config::parse_number(text);
  if (!value || *value - *value != 0.0) {  // infinities and NaN
    fail<UserError>("{} wants a number, not '{}'", name, text);
  }
  return *value;
}

std::int64_t to_integer(const std::string& name, const std::string& text) {
  const auto value = config::parse_integer(text);
  if (!value) {
    fail<UserError>("{} wants a whole number, not '{}'", name, text);
  }
  return *value;
}

template <class Set>
CLI::Option* add_text(CommandLine::Impl& impl,
                      const std::string& name,
                      const std::string& help,
                      Set set) {
  return impl.app->add_option_function<std::string>(name, set, help)->type_name("");
}

std::vector<std::string> names_of(std::span<const Command> commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    names.emplace_back(command.name);
  }
  return names;
}

std::string usage(std::span<const Command> commands) {
  std::string text =
      "Tandem: online RL post-training of language models.\n\n"
      "usage: tandem COMMAND [options]; tandem COMMAND --help lists them\n\n";
  for (const Command& command : commands) {
    text += fmt::format("  {:<12} {}\n", command.name, command.help);
  }
  return text + "\n  --version    what this is\n";
}

// CLI11's complaint as one line, with the nearest option where one is unknown.
std::string complaint(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    known.push_back(option->get_name());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with("-")) {
      return fmt::format("unknown option {}{}", extra, config::suggestion(extra, known));
    }
    return fmt::format("'{}' is one word too many", extra);
  }
  std::string text = error.what();
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

int parse_and_run(const Command& command, std::vector<std::string> words) {
  CLI::App app(command.help, fmt::format("tandem {}", command.name));
  CommandLine::Impl impl{&app, {}};
  CommandLine line(impl);
  command.set_up(line);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return 0;
  } catch (const CLI::ParseError& error) {
    fail<UserError>("{}; see tandem {} --help", complaint(app, error), command.name);
  }
  return impl.action();
}

int dispatch(std::span<const Command> commands, const std::vector<std::string>& words) {
  if (words.empty() || words[0] == "--help" || words[0] == "-h" || words[0] == "help") {
    std::fputs(usage(commands).c_str(), stdout);
    return words.empty() ? 2 : 0;
  }
  if (words[0] == "--version") {
    std::fputs((version_text() + "\n").c_str(), stdout);
    return 0;
  }
  for (const Command& command : commands) {
    if (words[0] == command.name) {
      return parse_and_run(command, {words.begin() + 1, words.end()});
    }
  }
  fail<UserError>("no command '{}'{} (tandem --help lists them)",
                  words[0],
                  config::suggestion(words[0], names_of(commands)));
}

int complain(int status, const char* what) {
  std::fflush(stdout);
  std::fprintf(stderr, "tandem: %s\n", what);
  return status;
}

}  // namespace

void CommandLine::add(const std::string& name, std::string& value, const std::string& help) {
  add_text(impl_, name, help, [&value](const std::string& text) { value = text; });
}

void CommandLine::add(const std::string& name, std::int64_t& value, const std::string& help) {
  add_text(impl_, name, help, [&value, name](const std::string& text) {
    value = to_integer(name, text);
  });
}

void CommandLine::add(const std::string& name, double& value, const std::string& help) {
  add_text(impl_, name, help, [&value, name](const std::string& text) {
    value = to_number(name, text);
  });
}

void CommandLine::add(const std::string& name,
                      std::optional<std::int64_t>& value,
                      const std::string& help) {
  add_text(impl_, name, help, [&value, name](const std::string& text) {
    value = to_integer(name, text);
  });
}

void CommandLine::add(const std::string& name,
                      std::optional<double>& value,
                      const std::string& help) {
  add_text(impl_, name, help, [&value, name](const std::string& text) {
    value = to_number(name, text);
  });
}

void CommandLine::add(const std::string& name,
                      std::vector<std::string>& values,
                      const std::string& help) {
  impl_.app->add_option(name, values, help)->type_name("")->expected(1)->take_all();
}

void CommandLine::flag(const std::string& name, bool& value, const std::string& help) {
  impl_.app->add_flag(name, value, help);
}

void CommandLine::need(const std::string& name, std::string& value, const std::string& help) {
  add_text(impl_, name, help, [&value](const std::string& text) { value = text; })->required();
}

void CommandLine::word(const std::string& name, std::string& value, const std::string& help) {
  add_text(impl_, name, help, [&value](const std::string& text) { value = text; });
}

void CommandLine::need_word(const std::string& name, std::string& value, const std::string& help) {
  need(name, value, help);
}

void CommandLine::words(const std::string& name,
                        std::vector<std::string>& values,
                        const std::string& help) {
  impl_.app->add_option(name, values, help)->type_name("");
}

void CommandLine::run(std::function<int()> action) {
  impl_.action = std::move(action);
}

void add_common_options(CommandLine& line, CommonOptions& options) {
  line.add("--threads", options.threads, "compute threads; 0: all cores");
  line.add("--isa", options.isa, "auto, avx512, avx2 or portable");
  line.add("--arithmetic", options.arithmetic, "of bfloat16: auto, widened or dot_bf16");
  line.add("--json", options.json, "write the results to this file; - is standard output");
}

int run_command_line(std::span<const Command> commands, const std::vector<std::string>& words) {
  try {
    return dispatch(commands, words);
  } catch (const UserError& e) {
    return complain(2, e.what());
  } catch (const MachineError& e) {
    return complain(3, e.what());
  } catch (const std::bad_alloc&) {
    return complain(3, "the machine has no memory left for this");
  } catch (const std::exception& e) {
    return complain(1, e.what());
  }
}

}  // namespace tandem::app
