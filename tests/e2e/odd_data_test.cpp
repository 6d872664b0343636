// Data and rewards that are right in form and odd in content: defined, counted, told.
#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include <doctest/doctest.h>

#include "support/commands_here.h"
#include "support/tiny_runs.h"
#include "support/workplace.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;
using test::run_here;
using test::Workplace;
using test::write;

std::string row(const std::string& prompt) {
  return R"({"prompt": ")" + prompt + R"(", "answer": "3"})" + "\n";
}

// The line that --dry-run prints about the training file.
std::string data_line(const Workplace& place, const std::string& overrides) {
  const auto result = run_here("train " + place.at("r.yaml") + " --dry-run " + overrides);
  CAPTURE(result.err);
  CHECK(result.status == 0);
  const auto begin = result.out.find(place.at("data.jsonl") + ": ");
  REQUIRE(begin != std::string::npos);
  return result.out.substr(begin, result.out.find('\n', begin) - begin);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("--dry-run says what a step is made of and what it needs of memory, and writes nothing") {
  const Workplace place;
  const auto result = run_here("train " + place.at("r.yaml") + " --dry-run trainer.memory=low");
  CAPTURE(result.err);
  REQUIRE(result.status == 0);
  CAPTURE(result.out);
  CHECK(contains(result.out,
                 "\n# a step: 2 prompts x 2 samples = 4 sequences; 1 updates of 1 minibatches in "
                 "1 passes\n"));
  // Megabytes of each part, then those of the phase that needs most.
  std::istringstream lines(result.out.substr(result.out.find("# memory plan\n") + 14));
  std::map<std::string, double> plan;
  for (std::string line; std::getline(lines, line);) {
    const std::string name = line.substr(0, line.find("  "));
    plan[name] = std::stod(line.substr(12));
  }
  for (const char* part : {"weights", "gradients", "optimizer", "kv cache", "activations"}) {
    CHECK_MESSAGE(plan.count(part) == 1, part);
  }
  CHECK(plan["optimizer"] == doctest::Approx(2 * plan["weights"]).epsilon(0.3));
  const double resident = plan["program"] + plan["weights"] + plan["optimizer"];
  const double train = resident + plan["gradients"] + plan["activations"];
  CHECK(plan["peak"] == doctest::Approx(train).epsilon(0.01));
  CHECK(plan["available"] > plan["peak"]);
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("prompts that are too long follow data.overlong, empty ones are left out; both counted") {
  const Workplace place;
  write(place.folder / "data.jsonl", row("1+1") + row("12345+678") + row("2+2") + row("  "));
  const std::string limit = "data.max_prompt_tokens=5 ";
  const std::string dropped = data_line(place, limit);
  CHECK_MESSAGE(contains(dropped, "4 rows, 2 kept (1 empty, 1 longer than 5 tokens)"), dropped);
  for (const std::string side : {"left", "right", "middle"}) {
    const std::string cut = data_line(place, limit + "data.overlong=" + side);
    CHECK_MESSAGE(contains(cut, "3 kept (1 empty, 1 cut to 5 tokens)"), cut);
    CHECK_MESSAGE(contains(cut, "min/median/max 3/3/5"), cut);
  }
  const auto refused =
      run_here("train " + place.at("r.yaml") + " " + limit + "data.overlong=error");
  CHECK(refused.status == 2);
  CHECK(refused.num_error_lines() == 1);
  CHECK_MESSAGE(contains(refused.err, "data.jsonl:2: has 9 tokens, 5 are allowed"), refused.err);
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("a run whose rewards all fail goes on, counts them and says which") {
  const Workplace place;
  write(place.folder / "broken.py",
        "def broken(completions, **kwargs):\n    raise ValueError('no score today')\n");
  auto text = test::recipe_text(place.folder.path());
  const std::string built_in = "kind: exact_match, name: accuracy";
  text.replace(text.find(built_in),
               built_in.size(),
               "kind: python, file: " + place.at("broken.py") + ", name: broken");
  write(place.folder / "x.yaml", text);
  const auto result = run_here("train " + place.at("x.yaml") + " trainer.steps=2 threads=1");
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.err, "a reward failed: broken on "));
  CHECK(contains(result.err, "no score today"));
  CHECK(contains(result.err, "no sample has a reward"));
  const auto metrics = test::read_metrics(place.folder / "runs/r");
  REQUIRE(metrics.size() == 2);
  for (const auto& step : metrics) {
    CHECK(step.at("rewards/broken/failures") == 4);
    CHECK(step.count("reward") == 0);
    CHECK(step.count("grad_norm") == 0);
  }

  const auto strict = run_here("train " + place.at("x.yaml") + " rewards.0.on_failure=error");
  CHECK(strict.status == 1);
  CHECK(contains(strict.err, "no score today"));
}

TEST_CASE("a Python reward that cannot be used is refused before anything is written") {
  const Workplace place;
  write(place.folder / "empty.py", "");
  write(place.folder / "syntax.py", "def accuracy(:\n");
  write(place.folder / "raises.py", "raise RuntimeError('at import')\n");
  for (const std::string name : {"no.py", "empty.py", "syntax.py", "raises.py"}) {
    auto text = test::recipe_text(place.folder.path());
    text.replace(text.find("kind: exact_match"), 17, "kind: python, file: " + place.at(name));
    write(place.folder / "x.yaml", text);
    const auto result = run_here("train " + place.at("x.yaml"));
    CAPTURE(result.err);
    CHECK(result.status == 2);
    CHECK(result.num_error_lines() == 1);
    CHECK(contains(result.err, name));
  }
  CHECK_FALSE(fs::exists(place.folder / "runs"));
}

TEST_CASE("completions without text are scored and trained on like others") {
  const Workplace place;
  // Nothing but the end token is left to sample.
  const auto result = run_here("train " + place.at("r.yaml") +
                               " threads=1 rollout.max_new_tokens=1 rollout.samples_per_prompt=64 "
                               "log.completions_every=1");
  CHECK_MESSAGE(result.status == 0, result.err);
  const fs::path run = place.folder / "runs/r";
  const std::string completions = read_file(run / "completions/step-000001.jsonl");
  CHECK(contains(completions, "\"completion\": \"\""));
  const auto metrics = test::read_metrics(run);
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].at("numerics/logprob_gap_max") == 0);
  CHECK(metrics[0].at("completions/mean_length") == 1);
}

TEST_CASE("algorithm.mask_truncated keeps completions that ran into the limit out of the loss") {
  const Workplace place;
  // All completions are truncated: the end token is not allowed before the limit.
  const std::string train = "train " + place.at("r.yaml") +
                            " threads=1 rollout.samples_per_prompt=16 rollout.min_new_tokens=3"
                            " rewards.0.kind=regex rewards.0.options.pattern=[0-4]";
  const auto step = [&](const std::string& name, const std::string& overrides) {
    const auto result = run_here(train + " run.name=" + name + overrides);
    REQUIRE_MESSAGE(result.status == 0, result.err);
    return test::read_metrics(place.folder / "runs" / name).at(0);
  };
  auto kept = step("kept", "");
  auto masked = step("masked", " algorithm.mask_truncated=true");
  CHECK(kept.at("completions/clipped_ratio") == 1);
  CHECK(masked.at("completions/clipped_ratio") == 1);
  CHECK(kept.at("grad_norm") > 0);
  CHECK(masked["grad_norm"] == 0);
  CHECK(masked["loss"] == 0);
  CHECK(kept.at("reward") == masked.at("reward"));
}

TEST_CASE("a run whose completions all end at the limit with equal rewards says so") {
  const Workplace place;
  const std::string train = "train " + place.at("r.yaml") + " threads=1 rewards.0.kind=regex ";
  // No text has an "x", and the end token is not allowed before the limit.
  const auto cut = run_here(train + "rewards.0.options.pattern=x rollout.min_new_tokens=3");
  CAPTURE(cut.err);
  REQUIRE(cut.status == 0);
  CHECK(contains(cut.err,
                 "step 1: nearly all completions end at rollout.max_new_tokens = 3 and nearly all "
                 "groups have equal rewards; raise it"));
  // Completions that end by themselves, or rewards that differ, are no reason for it.
  const auto ended = run_here(train +
                              "rewards.0.options.pattern=x rollout.max_new_tokens=30 "
                              "rollout.samples_per_prompt=16");
  CHECK_FALSE(contains(ended.err, "nearly all completions end"));
  const auto differing = run_here(train +
                                  "rewards.0.options.pattern=[0-4] rollout.min_new_tokens=3 "
                                  "rollout.samples_per_prompt=16");
  CHECK_FALSE(contains(differing.err, "nearly all completions end"));
}

TEST_CASE("an update whose gradient overflows is skipped, counted and told with its samples") {
  const Workplace place;
  // Rewards of 1e100 and 0, not divided by their deviation: slopes beyond float32.
  const auto result = run_here("train " + place.at("r.yaml") +
                               " threads=1 trainer.steps=2 rollout.samples_per_prompt=16 "
                               "algorithm.name=dr_grpo rewards.0.weight=1e100 "
                               "rewards.0.kind=regex rewards.0.options.pattern=[0-4]");
  CAPTURE(result.err);
  CHECK(result.status == 0);
  CHECK(contains(result.err, "update skipped: the gradient of "));
  CHECK(contains(result.err, " is not finite, from step 1, "));
  std::istringstream lines(read_file(place.folder / "runs/r/metrics.jsonl"));
  int num_steps = 0;
  for (std::string line; std::getline(lines, line); ++num_steps) {
    const auto step = nlohmann::json::parse(line);
    CHECK(step.at("train/skipped_steps") == 1);
    CHECK(step.at("grad_norm").is_string());  // "NaN" or "Infinity"
    CHECK(step.at("loss").is_number());
    CHECK(step.at("numerics/logprob_gap_max") == 0);
  }
  CHECK(num_steps == 2);
}

TEST_CASE("equal rewards give no update: counted, and the run ends as usual") {
  const Workplace place;
  const auto result = run_here("train " + place.at("r.yaml") +
                               " threads=1 rewards.0.kind=length "
                               R"(rewards.0.options={"max":10,"buffer":1})");
  CHECK_MESSAGE(result.status == 0, result.err);
  const auto metrics = test::read_metrics(place.folder / "runs/r");
  REQUIRE(metrics.size() == 1);
  CHECK(metrics[0].at("frac_reward_zero_std") == 1);
  CHECK(metrics[0].count("grad_norm") == 0);  // nothing was computed
  CHECK(metrics[0].at("train/skipped_steps") == 0);
}

}  // namespace
}  // namespace tandem
