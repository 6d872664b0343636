#include "app/cli.h"

#include <cstdio>
#include <new>

#include <doctest/doctest.h>
#include <unistd.h>

#include "app/version.h"
#include "base/error.h"

namespace tandem::app {
namespace {

struct Seen {
  std::string model;
  std::int64_t n = 1;
  double temperature = 1.0;
  std::optional<std::int64_t> limit;
  std::vector<std::string> stop;
  bool raw = false;
  std::string file;
  std::vector<std::string> rest;
  CommonOptions common;
};
Seen seen;

void set_up_show(CommandLine& line) {
  seen = {};
  line.need("--model", seen.model, "a model");
  line.add("--n", seen.n, "how many");
  line.add("--temperature", seen.temperature, "of sampling");
  line.add("--limit", seen.limit, "most");
  line.add("--stop", seen.stop, "a text; may be given again");
  line.flag("--raw", seen.raw, "no template");
  line.word("FILE", seen.file, "rows");
  line.words("key=value", seen.rest, "overrides");
  add_common_options(line, seen.common);
  line.run([] { return 0; });
}

void set_up_fail(CommandLine& line) {
  line.word("HOW", seen.file, "which error");
  line.run([]() -> int {
    if (seen.file == "user") {
      fail<UserError>("r.yaml:1: wrong");
    }
    if (seen.file == "machine") {
      fail<MachineError>("disk full");
    }
    if (seen.file == "memory") {
      throw std::bad_alloc();
    }
    if (seen.file == "signal") {
      return 128 + 15;
    }
    fail("step 3 failed");
  });
}

const Command kCommands[] = {{"show", "shows options", set_up_show},
                             {"fail", "fails", set_up_fail}};

struct Result {
  int status;
  std::string out;
  std::string err;
};

// Runs a command line with both streams caught.
Result run(const std::vector<std::string>& words) {
  const auto redirect = [](FILE* stream, FILE* file) {
    std::fflush(stream);
    const int saved = ::dup(::fileno(stream));
    ::dup2(::fileno(file), ::fileno(stream));
    return saved;
  };
  const auto restore = [](FILE* stream, FILE* file, int saved) {
    std::fflush(stream);
    ::dup2(saved, ::fileno(stream));
    ::close(saved);
    std::string text(100'000, '\0');
    std::rewind(file);
    text.resize(std::fread(text.data(), 1, text.size(), file));
    std::fclose(file);
    return text;
  };
  FILE* out = std::tmpfile();
  FILE* err = std::tmpfile();
  const int saved_out = redirect(stdout, out);
  const int saved_err = redirect(stderr, err);
  Result result;
  result.status = run_command_line(kCommands, words);
  result.out = restore(stdout, out, saved_out);
  result.err = restore(stderr, err, saved_err);
  return result;
}

TEST_CASE("options of all kinds reach their variables") {
  const auto result = run({"show",    "in.jsonl",      "a.b=1",   "c=2",    "--model",   "m",
                           "--n=1e3", "--temperature", "-0.5",    "--stop", "x",         "--stop",
                           "y",       "--raw",         "--limit", "7",      "--threads", "2",
                           "--isa",   "avx2",          "--json",  "-"});
  CHECK(result.status == 0);
  CHECK(result.err.empty());
  CHECK(seen.model == "m");
  CHECK(seen.n == 1000);
  CHECK(seen.temperature == -0.5);
  CHECK(seen.limit == 7);
  CHECK(seen.stop == std::vector<std::string>{"x", "y"});
  CHECK(seen.raw);
  CHECK(seen.file == "in.jsonl");
  CHECK(seen.rest == std::vector<std::string>{"a.b=1", "c=2"});
  CHECK(seen.common.threads == 2);
  CHECK(seen.common.isa == "avx2");
  CHECK(seen.common.json == "-");
}

TEST_CASE("help and version go to standard output with status 0") {
  CHECK(run({"--help"}).out.find("show") != std::string::npos);
  CHECK(run({"--help"}).status == 0);
  CHECK(run({"show", "--help"}).out.find("--temperature") != std::string::npos);
  CHECK(run({"show", "--help"}).status == 0);
  CHECK(run({"--version"}).out == version_text() + "\n");
  CHECK(run({}).status == 2);
}

TEST_CASE("a wrong command or option is status 2 with the nearest name") {
  CHECK(run({"shwo"}).status == 2);
  CHECK(run({"shwo"}).err ==
        "tandem: no command 'shwo'; did you mean show? (tandem --help lists them)\n");
  const auto option = run({"show", "--model", "m", "--temprature", "1"});
  CHECK(option.status == 2);
  CHECK(
      option.err ==
      "tandem: unknown option --temprature; did you mean --temperature?; see tandem show --help\n");
  CHECK(run({"show"}).err.find("--model") != std::string::npos);
  CHECK(run({"show"}).status == 2);
  CHECK(run({"fail", "user", "more"}).err.find("'more' is one word too many") != std::string::npos);
}

TEST_CASE("numbers that are none are refused with the option's name") {
  const auto error = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"show", "--model", "m"});
    const auto result = run(words);
    CHECK(result.status == 2);
    return result.err;
  };
  CHECK(error({"--n", "many"}) == "tandem: --n wants a whole number, not 'many'\n");
  CHECK(error({"--n", "1.5"}) == "tandem: --n wants a whole number, not '1.5'\n");
  CHECK(error({"--temperature", "nan"}) == "tandem: --temperature wants a number, not 'nan'\n");
  CHECK(error({"--temperature", "inf"}) == "tandem: --temperature wants a number, not 'inf'\n");
  CHECK(error({"--n"}).find("--n") != std::string::npos);
}

TEST_CASE("exit statuses tell the user's mistakes from the machine's and the run's") {
  CHECK(run({"fail", "user"}).status == 2);
  CHECK(run({"fail", "user"}).err == "tandem: r.yaml:1: wrong\n");
  CHECK(run({"fail", "machine"}).status == 3);
  CHECK(run({"fail", "memory"}).status == 3);
  CHECK(run({"fail", "other"}).status == 1);
  CHECK(run({"fail", "signal"}).status == 143);
}

}  // namespace
}  // namespace tandem::app
