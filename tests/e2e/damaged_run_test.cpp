// Resuming what is damaged, finished or short of disk: one line that names the file, and nothing
// of the run is changed.
#include <csignal>
#include <filesystem>

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "base/atomic_file.h"
#include "support/commands_here.h"
#include "support/workplace.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::run_here;
using test::Workplace;
using test::write;

// A finished run of two steps with a checkpoint after each.
struct FinishedRun : Workplace {
  FinishedRun() {
    const auto result = run_here(command());
    REQUIRE_MESSAGE(result.status == 0, result.err);
    REQUIRE(fs::exists(checkpoint("step-000002")));
  }
  [[nodiscard]] std::string command(std::int64_t steps = 2) const {
    return "train " + at("r.yaml") +
           " threads=1 trainer.checkpoint.every=1 trainer.steps=" + std::to_string(steps);
  }
  [[nodiscard]] std::string resume(std::int64_t steps = 3) const {
    return command(steps) + " --resume auto";
  }
  [[nodiscard]] fs::path run() const { return folder / "runs/r"; }
  [[nodiscard]] fs::path checkpoint(const std::string& name) const {
    return run() / "checkpoints" / name;
  }
};

void check_refused(const FinishedRun& finished, const std::string& named) {
  const std::string metrics = read_file(finished.run() / "metrics.jsonl");
  const std::string log = read_file(finished.run() / "log.txt");
  const auto result = run_here(finished.resume());
  CAPTURE(named);
  CAPTURE(result.err);
  CHECK(result.status == 2);
  CHECK(result.num_error_lines() == 1);
  CHECK(result.err.find(named) != std::string::npos);
  CHECK(read_file(finished.run() / "metrics.jsonl") == metrics);
  CHECK(read_file(finished.run() / "log.txt") == log);
}

TEST_CASE("a finished run that is resumed does nothing more and says so") {
  const FinishedRun finished;
  const std::string metrics = read_file(finished.run() / "metrics.jsonl");
  const auto result = run_here(finished.resume(2));
  CHECK(result.status == 0);
  CHECK(result.err.find("nothing is left to do") != std::string::npos);
  CHECK(read_file(finished.run() / "metrics.jsonl") == metrics);
  CHECK_FALSE(fs::exists(finished.folder / "runs/r-2"));

  const auto longer = run_here(finished.resume(3));
  CHECK_MESSAGE(longer.status == 0, longer.err);
  CHECK(longer.err.find("another recipe") != std::string::npos);
  CHECK(fs::exists(finished.checkpoint("step-000003")));
}

TEST_CASE("each file of a checkpoint may be missing, empty, cut short or nonsense") {
  for (const std::string name :
       {"state.json", "optimizer.safetensors", "model/model.safetensors", "model/config.json"}) {
    const FinishedRun finished;
    const fs::path file = finished.checkpoint("step-000002") / name;
    const std::string whole = read_file(file);
    for (const std::string& text :
         {std::string(), whole.substr(0, whole.size() / 2), std::string("nonsense")}) {
      write(file, text);
      check_refused(finished, name);
    }
    fs::remove(file);
    check_refused(finished, fs::path(name).filename().string());
    write(file, whole);
    CHECK(run_here(finished.resume()).status == 0);
  }
}

TEST_CASE("a file of a checkpoint that is larger than it can be is refused") {
  const FinishedRun finished;
  for (const std::string name :
       {"state.json", "optimizer.safetensors", "model/model.safetensors", "model/config.json"}) {
    const fs::path file = finished.checkpoint("step-000002") / name;
    const auto size = fs::file_size(file);
    fs::resize_file(file, std::uintmax_t{3} << 30);  // a hole: it takes no disk
    check_refused(finished, name);
    fs::resize_file(file, size);
  }
  fs::resize_file(finished.checkpoint("latest"), 8192);
  check_refused(finished, "latest");
}

TEST_CASE("numbers of another stream are refused, not drawn from") {
  const FinishedRun finished;
  const fs::path file = finished.checkpoint("step-000002") / "state.json";
  std::string text = read_file(file);
  const auto place = text.find("\"stream\": \"");
  REQUIRE(place != std::string::npos);
  text.insert(place + 11, "x");
  write(file, text);
  check_refused(finished, "state.json");
}

TEST_CASE("a checkpoint of another model is refused") {
  const FinishedRun finished;
  const fs::path config = finished.folder / "model/config.json";
  std::string text = read_file(config);
  text.replace(text.find("\"intermediate_size\": 64"), 23, "\"intermediate_size\": 48");
  write(config, text);
  check_refused(finished, "step-000002");
}

TEST_CASE("`latest` must name a checkpoint beside it") {
  const FinishedRun finished;
  for (const std::string text : {"", "step-000009\n", "../step-000002\n", "nonsense"}) {
    write(finished.checkpoint("latest"), text);
    check_refused(finished, "latest");
  }
}

TEST_CASE("--resume wants a run folder with a checkpoint") {
  const FinishedRun finished;
  const auto refused = [&](const std::string& where, const std::string& named) {
    const auto result = run_here(finished.command() + " --resume " + where);
    CAPTURE(result.err);
    CHECK(result.status == 2);
    CHECK(result.num_error_lines() == 1);
    CHECK(result.err.find(named) != std::string::npos);
  };
  refused(finished.at("nowhere"), "nowhere");
  refused(finished.at("model"), "model");
  fs::remove(finished.checkpoint("latest"));
  refused(finished.run().string(), "runs/r");
}

TEST_CASE("checkpoints past the newest named one are cut back, with what else lies past it") {
  const FinishedRun finished;
  write(finished.checkpoint("latest"), "step-000001\n");  // as if killed before it was replaced
  fs::create_directory(finished.checkpoint(".tmp-step-000003-1"));
  fs::create_directory(finished.checkpoint("step-1000000"));
  const auto result = run_here(finished.resume(2));
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(fs::exists(finished.checkpoint("step-000001")));
  CHECK(fs::exists(finished.checkpoint("step-000002")));
  CHECK_FALSE(fs::exists(finished.checkpoint("step-1000000")));
  CHECK_FALSE(fs::exists(finished.checkpoint(".tmp-step-000003-1")));
  const std::string metrics = read_file(finished.run() / "metrics.jsonl");
  CHECK(std::count(metrics.begin(), metrics.end(), '\n') == 2);
}

TEST_CASE("a disk that fills up later leaves the older checkpoint whole, and the run goes on") {
  const FinishedRun finished;
  const fs::path weights = finished.checkpoint("step-000002") / "model/model.safetensors";
  const std::string before = read_file(weights);
  const auto limit = [] {
    ::signal(SIGXFSZ, SIG_IGN);  // a write then fails as it does on a full disk
    const rlimit small = {16'384, 16'384};
    ::setrlimit(RLIMIT_FSIZE, &small);
  };
  REQUIRE(before.size() > 16'384);
  const auto failed = test::run_program(finished.resume(), limit);
  CAPTURE(failed.err);
  CHECK(failed.status == 3);
  CHECK(failed.err.find("cannot be written") != std::string::npos);
  CHECK(read_file(finished.checkpoint("latest")) == "step-000002\n");
  CHECK(read_file(weights) == before);
  CHECK_FALSE(fs::exists(finished.checkpoint("step-000003")));

  const auto resumed = run_here(finished.resume());
  CHECK_MESSAGE(resumed.status == 0, resumed.err);
  CHECK(fs::exists(finished.checkpoint("step-000003")));
}

}  // namespace
}  // namespace tandem
