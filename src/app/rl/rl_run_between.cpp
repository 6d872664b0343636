// What a run does between steps: validation, the best so far, checkpoints.
#include <algorithm>

#include "app/rl/rl_run.h"
#include "app/rl/validation.h"
#include "base/log.h"

namespace tandem::app {
namespace {

constexpr std::size_t kShownSamples = 5;

}  // namespace

bool RlRun::note_best(std::int64_t step_number, const Metrics& metrics) {
  const auto reward = validation_reward(metrics);
  if (!parts_.recipe().trainer.checkpoint.best || !reward ||
      (state_.best_step >= 0 && *reward <= state_.best_reward)) {
    return false;
  }
  state_.best_step = step_number;
  state_.best_reward = *reward;
  return true;
}

void RlRun::validate_now(std::int64_t step_number, Metrics& metrics) {
  const auto span = spans_.scope("validate");
  std::vector<Group> groups;
  const auto values = validate(parts_, *engine_, step_number, &groups);
  metrics.insert(values.begin(), values.end());
  (first_validation_.empty() ? first_validation_ : last_validation_) = values;
  auto& samples = samples_[step_number == 0 ? "before" : "after"];
  samples.clear();
  for (std::size_t i = 0; i < std::min(kShownSamples, groups.size()); ++i) {
    const auto& prompt = groups[i].prompt;
    samples.push_back({prompt.messages.empty() ? prompt.text : prompt.messages.back().content,
                       groups[i].trajectories.front().text,
                       prompt.ground_truth});
  }
  for (const auto& [name, value] : values) {
    TANDEM_LOG(info, "step {}: {} = {:.3f}", step_number, name, value);
  }
}

void RlRun::save_checkpoint() {
  const auto& section = parts_.recipe().trainer.checkpoint;
  state_.recipe = recipe_yaml(parts_.recipe());
  checkpoints_.save({.state = state_,
                     .weights = *parts_.session.weights,
                     .optimizer = *optimizer_,
                     .export_model = section.export_model,
                     .model_files = parts_.session.files},
                    section.keep);
  saved_step_ = state_.step;
}

}  // namespace tandem::app
