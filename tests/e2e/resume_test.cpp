// A run that was killed goes on as if it never had been: the same bits in metrics and weights.
#include <csignal>
#include <filesystem>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "support/tiny_runs.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::Program;
using test::TinyRuns;
using test::Words;

// Several updates a step, a reference, a schedule with warm-up, validation, epochs of the data.
const Words kOverrides = {"trainer.steps=10",
                          "trainer.minibatches=2",
                          "algorithm.epochs=2",
                          "algorithm.kl.coefficient=0.01",
                          "optimizer.schedule=cosine",
                          "optimizer.warmup_steps=6",
                          "trainer.checkpoint.every=3",
                          "trainer.checkpoint.keep=2",
                          "trainer.validate_every=2",
                          "log.completions_every=2",
                          "log.console=false"};

bool has_line_of_step(const fs::path& run, std::int64_t step) {
  if (!fs::exists(run / "metrics.jsonl")) {
    return false;
  }
  const std::string wanted = "{\"step\": " + std::to_string(step) + ",";
  return read_file(run / "metrics.jsonl").find(wanted) != std::string::npos;
}

bool is_writing_checkpoint(const fs::path& run) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error)) {
    if (entry.path().filename().string().starts_with(".tmp-")) {
      return true;
    }
  }
  return false;
}

std::set<std::string> completions_of(const fs::path& run) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(run / "completions")) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

struct Runs {
  explicit Runs(const std::string& dtype = "float32")
      : overrides(test::joined(kOverrides, {"model.dtype=" + dtype})) {
    const auto warmed = test::run_program(runs.warm_up({"sft.steps=30", "model.dtype=" + dtype}));
    REQUIRE_MESSAGE(warmed.status == 0, warmed.err);
    const auto whole = test::run_program(runs.train("whole", overrides));
    REQUIRE_MESSAGE(whole.status == 0, whole.err);
    check_agreement();
  }

  // Sampler and trainer computed the same bits at every step, whatever came between.
  void check_agreement() const {
    std::int64_t num_steps = 0;
    for (const auto& line : test::read_metrics(runs.run_folder("whole"))) {
      if (line.count("reward") != 0) {
        ++num_steps;
        CHECK(line.at("numerics/logprob_gap_max") == 0);
        CHECK(line.at("numerics/ratio_not_one_fraction") == 0);
      }
    }
    CHECK(num_steps == 10);
  }

  [[nodiscard]] Words resumed(const std::string& name) const {
    return test::joined(runs.train(name, overrides), {"--resume", "auto"});
  }

  void check_same(const std::string& name) const {
    const auto whole = runs.run_folder("whole");
    const auto run = runs.run_folder(name);
    CHECK(test::determined_metrics(run) == test::determined_metrics(whole));
    CHECK(test::exported_weights(run) == test::exported_weights(whole));
    CHECK(completions_of(run) == completions_of(whole));
    CHECK_FALSE(is_writing_checkpoint(run));
  }

  // Starts a run, or goes on with it, and kills it when `when` holds.
  void kill_when(const std::string& name, const std::function<bool()>& when) const {
    Program program(resumed(name));
    CHECK(program.wait_until(when));
    program.send(SIGKILL);
    CHECK(program.finish().status == 128 + SIGKILL);
  }

  // Kills a run while it writes a checkpoint and returns its name. A kill that came too late, with
  // the checkpoint whole, is tried again on a fresh run.
  [[nodiscard]] std::string kill_while_writing() const {
    for (int attempt = 1; attempt <= 20; ++attempt) {
      const std::string name = "writing" + std::to_string(attempt);
      const fs::path run = runs.run_folder(name);
      kill_when(name, [&] { return has_line_of_step(run, 6) && is_writing_checkpoint(run); });
      if (is_writing_checkpoint(run)) {
        return name;
      }
    }
    FAIL("no kill came while a checkpoint was written");
    return "";
  }

  void finish(const std::string& name) const {
    const auto result = test::run_program(resumed(name));
    CHECK_MESSAGE(result.status == 0, result.err);
    check_same(name);
  }

  TinyRuns runs;
  Words overrides;
};

TEST_CASE(
    "killed between checkpoints, while one is written, and twice, a run ends with the same bits") {
  const Runs tiny;
  const fs::path between = tiny.runs.run_folder("between");
  tiny.kill_when("between", [&] { return has_line_of_step(between, 5); });
  tiny.finish("between");

  tiny.finish(tiny.kill_while_writing());

  const fs::path twice = tiny.runs.run_folder("twice");
  tiny.kill_when("twice", [&] { return has_line_of_step(twice, 4); });
  tiny.kill_when("twice", [&] { return has_line_of_step(twice, 8); });
  tiny.finish("twice");
}

TEST_CASE("in bfloat16 too, masters and all: killed, a run ends with the same bits") {
  const Runs tiny("bfloat16");
  const fs::path run = tiny.runs.run_folder("killed");
  tiny.kill_when("killed", [&] { return has_line_of_step(run, 5); });
  tiny.finish("killed");
  for (const auto& line : test::determined_metrics(run)) {
    const auto gap = line.find("numerics/logprob_gap_max");
    CHECK((gap == line.end() || gap->second == 0));
  }
  const auto other = test::run_program(
      test::joined(tiny.resumed("killed"), {"model.dtype=float32", "trainer.steps=12"}));
  CHECK(other.status == 2);
  CHECK(other.err.find("is of a run in bfloat16") != std::string::npos);
}

TEST_CASE(
    "a signal ends a run after its step, with a checkpoint; resumed, it ends with the same bits") {
  const Runs tiny;
  for (const int signal : {SIGTERM, SIGINT}) {
    const std::string name = signal == SIGTERM ? "terminated" : "interrupted";
    const fs::path run = tiny.runs.run_folder(name);
    Program program(tiny.runs.train(name, tiny.overrides));
    CHECK(program.wait_until([&] { return has_line_of_step(run, 4); }));
    program.send(signal);
    CHECK(program.finish().status == 128 + signal);
    CHECK(fs::exists(run / "checkpoints" / "latest"));
    const auto result = test::run_program(tiny.resumed(name));
    CHECK_MESSAGE(result.status == 0, result.err);
    tiny.check_same(name);
  }
}

TEST_CASE("a checkpoint without an exported model resumes with the same bits") {
  const Runs tiny;
  const fs::path run = tiny.runs.run_folder("bare");
  const Words bare = {"trainer.checkpoint.export=false"};
  Program program(test::joined(tiny.runs.train("bare", kOverrides), bare));
  CHECK(program.wait_until([&] { return has_line_of_step(run, 4); }));
  program.send(SIGKILL);
  CHECK(program.finish().status == 128 + SIGKILL);
  const auto result = test::run_program(test::joined(tiny.resumed("bare"), bare));
  CHECK_MESSAGE(result.status == 0, result.err);
  CHECK(test::determined_metrics(run) == test::determined_metrics(tiny.runs.run_folder("whole")));
  CHECK_FALSE(fs::exists(run / "checkpoints/step-000010/model"));
}

TEST_CASE(
    "the same recipe gives the same bits again, on one thread and on two; another seed does not") {
  const Runs tiny;
  for (const std::string threads : {"1", "2"}) {
    const std::string name = "threads" + threads;
    const auto result = test::run_program(
        test::joined(tiny.runs.train(name, tiny.overrides), {"threads=" + threads}));
    CHECK_MESSAGE(result.status == 0, result.err);
    tiny.check_same(name);
  }
  const auto other =
      test::run_program(test::joined(tiny.runs.train("other", tiny.overrides), {"seed=2"}));
  CHECK(other.status == 0);
  CHECK(test::determined_metrics(tiny.runs.run_folder("other")) !=
        test::determined_metrics(tiny.runs.run_folder("whole")));
}

}  // namespace
}  // namespace tandem
