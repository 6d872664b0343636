// Settings of sampling through whole runs: what removes ids is known to the trainer, and guessed
// tokens change nothing that a run computes.
#include <doctest/doctest.h>

#include "support/tiny_runs.h"

namespace tandem {
namespace {

using test::TinyRuns;
using test::Words;

std::vector<test::MetricLine> run(const TinyRuns& runs,
                                  const std::string& name,
                                  const Words& more) {
  const auto trained = test::run_program(
      runs.train(name, test::joined({"trainer.steps=3", "trainer.validate_before=false"}, more)));
  REQUIRE_MESSAGE(trained.status == 0, trained.err);
  return test::determined_metrics(runs.run_folder(name));
}

// Guesses are counted, and they save passes; all else has to be the same bits.
void forget_guesses(std::vector<test::MetricLine>& lines) {
  for (auto& line : lines) {
    std::erase_if(line, [](const auto& entry) { return entry.first.starts_with("rollout/"); });
  }
}

TEST_CASE(
    "with frozen weights and a part of the ids the ratio is exactly 1; guesses change nothing") {
  const TinyRuns runs;
  const auto warmed = test::run_program(runs.warm_up());
  REQUIRE_MESSAGE(warmed.status == 0, warmed.err);
  int number = 0;
  for (const Words& settings :
       {Words{"rollout.top_p=0.8"},
        Words{"rollout.top_k=5", "rollout.temperature=0.7"},
        Words{"rollout.banned_token_ids=[3, 7]", "rollout.min_new_tokens=2"},
        Words{"rollout.allowed_token_ids=[3, 4, 5, 6, 7, 8, 9, 10]"}}) {
    CAPTURE(settings.front());
    const auto frozen = test::joined(settings, {"optimizer.learning_rate=0"});
    for (const auto& line : run(runs, "frozen" + std::to_string(++number), frozen)) {
      if (line.count("reward") == 0) {
        continue;
      }
      CHECK(line.at("numerics/logprob_gap_max") == 0);
      CHECK(line.at("numerics/ratio_not_one_fraction") == 0);
      if (line.count("sampling/importance_sampling_ratio/min") != 0) {
        CHECK(line.at("sampling/importance_sampling_ratio/min") == 1);
        CHECK(line.at("sampling/importance_sampling_ratio/max") == 1);
      }
    }
  }
  auto plain = run(runs, "plain", {});
  auto guessed = run(runs, "guessed", {"rollout.speculation.method=ngram"});
  double num_guesses = 0;
  for (const auto& line : guessed) {
    num_guesses += line.count("rollout/drafts") != 0 ? line.at("rollout/drafts") : 0;
  }
  CHECK(num_guesses > 0);
  forget_guesses(plain);
  forget_guesses(guessed);
  CHECK(plain == guessed);
}

}  // namespace
}  // namespace tandem
