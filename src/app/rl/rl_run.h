// An RL run: rollout, rewards, training, step after step, on one set of weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/memory_plan.h"
#include "app/recipe.h"
#include "app/rl/collect.h"
#include "app/rl/prompt_data.h"
#include "app/rl/score.h"
#include "app/rl/step_metrics.h"
#include "app/run_folder.h"
#include "app/session.h"
#include "app/tensorboard.h"
#include "base/spans.h"
#include "rollout/engine.h"
#include "trainer/checkpoint.h"
#include "trainer/schedule.h"
#include "trainer/train_step.h"

namespace tandem::app {

/// Everything that a run is made of, in the order in which it has to come into being: reward
/// workers are forked before any thread starts.
struct RlParts {
  LoadedRecipe loaded;
  std::unique_ptr<rewards::RewardSet> rewards;
  Session session;
  std::unique_ptr<PromptData> data;
  MemoryPlan plan;
  std::int64_t available_bytes = 0;  // for the whole run, what the weights took included

  [[nodiscard]] const Recipe& recipe() const { return loaded.recipe; }
};

/// Builds them for `train` or `eval`. Throws before anything is written.
std::unique_ptr<RlParts> make_rl_parts(LoadedRecipe loaded, Purpose purpose);

/// Samples, scores and summarises the validation prompts. `groups` receives them where it is not
/// null.
Metrics validate(RlParts& parts,
                 rollout::Engine& engine,
                 std::int64_t step,
                 std::vector<Group>* groups);

/// `tape` keeps what sampling computes, `spans` how long its parts take, where they are not null;
/// they must outlive the engine.
std::unique_ptr<rollout::Engine> make_engine(const RlParts& parts,
                                             model::ActivationTape* tape = nullptr,
                                             SpanRecorder* spans = nullptr);

/// One run in its folder. Not thread safe.
class RlRun {
 public:
  /// Continues from `checkpoint` where it is given; the folder is then cut back to its step.
  RlRun(RlParts& parts, RunFolder folder, const std::optional<std::filesystem::path>& checkpoint);

  /// Runs to the end, or to the next safe point after a signal. Returns the exit status.
  int run();

 private:
  struct SampleView {  // a validation sample, to show before and after
    std::string prompt, completion, truth;
  };

  Metrics step(std::int64_t step);
  trainer::TrainStepReport train(std::int64_t step,
                                 std::span<const Group> groups,
                                 std::span<const GroupScore> scores);
  void write_metrics(std::int64_t step, const Metrics& metrics);
  void finish_step(std::int64_t step, Metrics& metrics);
  void validate_now(std::int64_t step, Metrics& metrics);
  /// Whether the step's validation is the best so far, where the best is kept.
  bool note_best(std::int64_t step, const Metrics& metrics);
  void save_checkpoint();
  void warn(std::int64_t step, std::span<const Group> groups, const Metrics& metrics) const;
  void print_end();

  RlParts& parts_;
  RunFolder folder_;
  trainer::CheckpointFolder checkpoints_;
  FrozenCopy reference_;  // empty without a KL term
  std::unique_ptr<trainer::AdamW> optimizer_;
  std::unique_ptr<model::ActivationTape> tape_;  // null unless activations are reused
  std::unique_ptr<rollout::Engine> engine_;
  std::unique_ptr<trainer::PolicyTrainer> trainer_;
  std::optional<EventWriter> events_;
  std::int64_t total_steps_ = 0;
  trainer::ScheduleConfig schedule_;
  trainer::RunState state_;
  std::int64_t saved_step_ = -1;
  double checkpoint_s_ = 0;  // of the newest checkpoint, until a line of metrics has it
  SpanRecorder spans_;
  std::map<std::string, std::vector<SampleView>> samples_;  // "before" and "after"
  std::map<std::string, double> first_validation_, last_validation_;
};

}  // namespace tandem::app
