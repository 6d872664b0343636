#include "app/run_folder.h"

#include <fstream>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

RunFolder new_run(const test::TemporaryFolder& folder) {
  RunFolder run = RunFolder::create(folder.path() / "runs", "a");
  run.write_file("recipe.yaml", "seed: 1\n");
  return run;
}

TEST_CASE("a name that is taken gets -2, -3 and so on") {
  const test::TemporaryFolder folder;
  CHECK(RunFolder::create(folder.path() / "runs", "a").path().filename() == "a");
  CHECK(RunFolder::create(folder.path() / "runs", "a").path().filename() == "a-2");
  CHECK(RunFolder::create(folder.path() / "runs", "a").path().filename() == "a-3");
  CHECK(RunFolder::create(folder.path() / "runs", "b").path().filename() == "b");
}

TEST_CASE("a folder that cannot be written is a machine error, one that is no run a user error") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(RunFolder::create("/proc/no/such", "a"), MachineError);
  write_file_atomic(folder / "file", "");
  CHECK_THROWS_AS(RunFolder::create(folder / "file", "a"), MachineError);
  CHECK_THROWS_AS(RunFolder::open(folder.path()), UserError);
  CHECK_THROWS_AS(RunFolder::open(folder / "missing"), UserError);
  CHECK(RunFolder::open(new_run(folder).path()).path().filename() == "a");
}

TEST_CASE("metrics are one object a step, keys in order, what is not finite as a text") {
  const test::TemporaryFolder folder;
  const RunFolder run = new_run(folder);
  run.append_metrics(1, {{"b", 0.1}, {"a", 2.0}});
  run.append_metrics(2, {{"a", std::numeric_limits<double>::quiet_NaN()}});
  CHECK(read_file(run.path() / "metrics.jsonl") ==
        "{\"step\": 1, \"a\": 2, \"b\": 0.1}\n{\"step\": 2, \"a\": \"NaN\"}\n");
}

TEST_CASE("what lies past a step is cut back, broken lines and leftovers of a kill too") {
  const test::TemporaryFolder folder;
  const RunFolder run = new_run(folder);
  for (const int step : {1, 2, 3, 4}) {
    run.append_metrics(step, {{"x", 1.0}});
    const std::vector<std::string> spans = {"{\"step\": " + std::to_string(step) + "}"};
    run.append_trace(spans);
    run.write_completions(step, "{}\n");
  }
  std::ofstream(run.path() / "metrics.jsonl", std::ios::app) << "{\"step\": 5, \"x";
  write_file_atomic(run.path() / "completions/.tmp-step-000005.jsonl-77", "");
  run.cut_back(2);
  CHECK(read_file(run.path() / "metrics.jsonl") ==
        "{\"step\": 1, \"x\": 1}\n{\"step\": 2, \"x\": 1}\n");
  CHECK(read_file(run.path() / "trace.jsonl") == "{\"step\": 1}\n{\"step\": 2}\n");
  CHECK(fs::exists(run.path() / "completions/step-000002.jsonl"));
  CHECK(std::distance(fs::directory_iterator(run.path() / "completions"), {}) == 2);
  run.append_metrics(3, {{"x", 2.0}});
  CHECK(read_file(run.path() / "metrics.jsonl").ends_with("{\"step\": 3, \"x\": 2}\n"));
}

TEST_CASE("the newest run with a checkpoint is the one to resume") {
  const test::TemporaryFolder folder;
  const fs::path runs = folder.path() / "runs";
  CHECK_FALSE(RunFolder::newest_resumable(runs, "a"));
  const RunFolder first = RunFolder::create(runs, "a");
  fs::create_directories(first.checkpoints());
  write_file_atomic(first.checkpoints() / "latest", "step-000001\n");
  RunFolder::create(runs, "a");
  CHECK(RunFolder::newest_resumable(runs, "a") == first.path());
}

TEST_CASE("a full disk is a machine error that names the file") {
  if (!fs::exists("/dev/full")) {
    MESSAGE("skipped: no /dev/full");
    return;
  }
  const test::TemporaryFolder folder;
  const RunFolder run = new_run(folder);
  fs::create_symlink("/dev/full", run.path() / "metrics.jsonl");
  try {
    run.append_metrics(1, {{"x", 1.0}});
    FAIL("no error");
  } catch (const MachineError& e) {
    CHECK(std::string(e.what()).find("metrics.jsonl: cannot be written: No space left") !=
          std::string::npos);
  }
}

}  // namespace
}  // namespace tandem::app
