// The smallest recipe from random weights to a policy that learnt, by the program itself.
#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include <doctest/doctest.h>

#include "support/tiny_runs.h"

namespace tandem {
namespace {

using test::MetricLine;
using test::TinyRuns;

// Steps have rewards; the line of the validation before the first has none.
std::vector<MetricLine> steps_of(const std::filesystem::path& run) {
  auto lines = test::read_metrics(run);
  std::erase_if(lines, [](const MetricLine& line) { return line.count("reward") == 0; });
  return lines;
}

// The reward of step 1 is the warm-up's: its samples are drawn before any update.
double warm_up_reward(const std::vector<MetricLine>& steps) {
  return steps.front().at("reward");
}

double last_reward(const std::vector<MetricLine>& steps) {
  const std::size_t count = std::min<std::size_t>(5, steps.size());
  double sum = 0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) {
    sum += steps[i].at("reward");
  }
  return sum / static_cast<double>(count);
}

bool learnt(const std::vector<MetricLine>& steps) {
  return last_reward(steps) > 0.2 && last_reward(steps) >= warm_up_reward(steps) + 0.15;
}

// The part of the steps' time that the outermost spans within them cover.
double covered_by_spans(const std::filesystem::path& run, const std::vector<MetricLine>& steps) {
  double covered = 0;
  bool in_step = false;
  std::istringstream in(read_file(run / "trace.jsonl"));
  for (std::string line; std::getline(in, line);) {
    const auto span = nlohmann::json::parse(line);
    in_step = span.at("depth") == 0 ? span.at("name") == "step" : in_step;
    covered += in_step && span.at("depth") == 1 ? span.at("seconds").get<double>() : 0;
  }
  double whole = 0;
  for (const MetricLine& step : steps) {
    whole += step.at("step_time");
  }
  return covered / whole;
}

// The complete events of the run's Chrome trace, as `report` writes it.
std::vector<nlohmann::json> chrome_events(const std::filesystem::path& run) {
  const auto file = run / "trace.json";
  const auto report = test::run_program({"report", run.string(), "--chrome-trace", file.string()});
  REQUIRE_MESSAGE(report.status == 0, report.err);
  std::vector<nlohmann::json> events;
  const auto trace = nlohmann::json::parse(read_file(file));
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == "X") {
      events.push_back(event);
    }
  }
  return events;
}

void check_spans(const std::filesystem::path& run) {
  const double covered = covered_by_spans(run, steps_of(run));
  CHECK(covered > 0.95);
  CHECK(covered < 1.001);
  std::set<std::string> names;
  for (const auto& event : chrome_events(run)) {
    names.insert(event.at("name"));
  }
  for (const char* name : {"step",
                           "rollout",
                           "prefill",
                           "decode",
                           "sample",
                           "reward",
                           "train",
                           "forward",
                           "backward",
                           "optimizer",
                           "record"}) {
    CHECK_MESSAGE(names.count(name) == 1, name);
  }
}

// Warms up and trains in `dtype`, and checks that the policy learnt and that sampler and trainer
// agreed at every step. Returns what the program said.
std::string check_learning(const TinyRuns& runs, const std::string& dtype) {
  const auto warmed = test::run_program(runs.warm_up({"model.dtype=" + dtype}));
  REQUIRE_MESSAGE(warmed.status == 0, warmed.err);
  const auto trained = test::run_program(runs.train("tiny", {"model.dtype=" + dtype}));
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  const auto steps = steps_of(runs.run_folder("tiny"));
  REQUIRE(steps.size() == 25);
  MESSAGE("reward " << warm_up_reward(steps) << " after the warm-up, " << last_reward(steps)
                    << " at the end");
  CHECK(learnt(steps));
  for (const MetricLine& step : steps) {
    CHECK(step.at("numerics/logprob_gap_max") == 0);
    CHECK(step.at("numerics/ratio_not_one_fraction") == 0);
  }
  return trained.out;
}

TEST_CASE("in bfloat16 the tiny recipe learns as well, and its export is in bfloat16") {
  const TinyRuns runs;
  check_learning(runs, "bfloat16");
  const auto config =
      read_file(runs.run_folder("tiny") / "checkpoints/step-000025/model/config.json");
  CHECK(config.find("bfloat16") != std::string::npos);
}

TEST_CASE("the tiny recipe learns from its reward, and without a learning rate it does not") {
  const TinyRuns runs;
  const std::string out = check_learning(runs, "float32");
  for (const char* file : {"recipe.yaml", "run.json", "trace.jsonl", "report.html", "log.txt"}) {
    CHECK_MESSAGE(std::filesystem::file_size(runs.run_folder("tiny") / file) > 0, file);
  }
  CHECK(out.find("before: ") != std::string::npos);
  CHECK(out.find("MB at the peak") != std::string::npos);
  CHECK(out.find("report: ") != std::string::npos);
  check_spans(runs.run_folder("tiny"));

  const auto idle = test::run_program(
      runs.train("idle", {"optimizer.learning_rate=0", "trainer.steps=8", "arithmetic=widened"}));
  REQUIRE_MESSAGE(idle.status == 0, idle.err);
  const auto facts = nlohmann::json::parse(read_file(runs.run_folder("idle") / "run.json"));
  CHECK(facts.at("arithmetic") == "widened");
  CHECK_FALSE(learnt(steps_of(runs.run_folder("idle"))));
}

}  // namespace
}  // namespace tandem
