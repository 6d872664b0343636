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

// Dashboards key on these names: every step has all of them.
const std::set<std::string> kStepMetrics = {"loss",
                                            "grad_norm",
                                            "learning_rate",
                                            "epoch",
                                            "num_tokens",
                                            "step_time",
                                            "completions/mean_length",
                                            "completions/min_length",
                                            "completions/max_length",
                                            "completions/clipped_ratio",
                                            "completions/mean_terminated_length",
                                            "completions/min_terminated_length",
                                            "completions/max_terminated_length",
                                            "rewards/progress/mean",
                                            "rewards/progress/std",
                                            "rewards/progress/failures",
                                            "reward",
                                            "reward_std",
                                            "frac_reward_zero_std",
                                            "entropy",
                                            "clip_ratio/low_mean",
                                            "clip_ratio/low_min",
                                            "clip_ratio/high_mean",
                                            "clip_ratio/high_max",
                                            "clip_ratio/region_mean",
                                            "sampling/sampling_logp_difference/mean",
                                            "sampling/sampling_logp_difference/max",
                                            "sampling/importance_sampling_ratio/min",
                                            "sampling/importance_sampling_ratio/mean",
                                            "sampling/importance_sampling_ratio/max",
                                            "time/rollout_s",
                                            "time/reward_s",
                                            "time/reference_s",
                                            "time/train_s",
                                            "time/optimizer_s",
                                            "time/checkpoint_s",
                                            "rollout/tokens_per_s",
                                            "rollout/prefix_hit_rate",
                                            "rollout/kv_usage_max",
                                            "rollout/preemptions",
                                            "train/tokens_per_s",
                                            "train/padding_fraction",
                                            "train/skipped_steps",
                                            "numerics/logprob_gap_max",
                                            "numerics/ratio_not_one_fraction",
                                            "memory/peak_rss_bytes",
                                            "memory/weights_bytes",
                                            "memory/optimizer_bytes",
                                            "memory/kv_bytes",
                                            "memory/activations_bytes"};

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

void check_metrics(const std::vector<MetricLine>& steps) {
  for (const MetricLine& step : steps) {
    for (const std::string& name : kStepMetrics) {
      CHECK_MESSAGE(step.count(name) == 1, name);
    }
  }
  // The checkpoints after steps 12 and 24 are in the lines of the steps that follow.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK((steps[i].at("time/checkpoint_s") > 0) == (i == 12 || i == 24));
  }
  // Nothing grows from step to step: what is taken is taken in the first ones.
  CHECK(steps[23].at("memory/peak_rss_bytes") <= 1.02 * steps[7].at("memory/peak_rss_bytes"));
  for (const char* name : {"val/validation/reward/mean@1", "val/validation/acc/mean@1"}) {
    CHECK_MESSAGE(steps.back().count(name) == 1, name);
  }
}

// run.json: what one needs to know to make the run again.
void check_facts(const std::filesystem::path& run) {
  const auto facts = nlohmann::json::parse(read_file(run / "run.json"));
  CHECK(facts.at("version").get<std::string>().starts_with("tandem "));
  CHECK(facts.at("seed") == 1);
  const auto command = facts.at("command").get<std::string>();
  CHECK(command.find("train recipes/tiny.yaml") != std::string::npos);
  CHECK(command.find("model.dtype=float32") != std::string::npos);
  CHECK(facts.at("threads").get<int>() > 0);
  for (const char* name : {"commit", "started", "host", "cpu", "isa", "arithmetic", "libtorch"}) {
    CHECK_MESSAGE(facts.at(name).get<std::string>() != "", name);
  }
}

// Warms up and trains in `dtype`, and checks that the policy learnt and that sampler and trainer
// agreed at every step. Returns what the program said.
std::string check_learning(const TinyRuns& runs, const std::string& dtype) {
  const auto warmed = test::run_program(runs.warm_up({"model.dtype=" + dtype}));
  REQUIRE_MESSAGE(warmed.status == 0, warmed.err);
  const auto trained = test::run_program(runs.train(
      "tiny",
      {"model.dtype=" + dtype, "trainer.checkpoint.every=12", "trainer.checkpoint.keep=1"}));
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
  CHECK(out.find("val/validation/acc/mean@1: ") != std::string::npos);
  CHECK(out.find(" before, ") != std::string::npos);
  CHECK(out.find("MB at the peak") != std::string::npos);
  CHECK(out.find("report: ") != std::string::npos);
  check_spans(runs.run_folder("tiny"));
  check_metrics(steps_of(runs.run_folder("tiny")));
  check_facts(runs.run_folder("tiny"));

  const auto idle = test::run_program(
      runs.train("idle", {"optimizer.learning_rate=0", "trainer.steps=8", "arithmetic=widened"}));
  REQUIRE_MESSAGE(idle.status == 0, idle.err);
  const auto facts = nlohmann::json::parse(read_file(runs.run_folder("idle") / "run.json"));
  CHECK(facts.at("arithmetic") == "widened");
  CHECK_FALSE(learnt(steps_of(runs.run_folder("idle"))));
}

}  // namespace
}  // namespace tandem
