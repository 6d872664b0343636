#include "app/rl/rl_run.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include <fmt/format.h>

#include "app/compute.h"
#include "app/console.h"
#include "app/interrupt.h"
#include "app/report/report.h"
#include "app/rl/recipe_parts.h"
#include "app/rl/records.h"
#include "base/error.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "trainer/schedule.h"
#include "trainer/weight_update.h"

namespace tandem::app {
namespace {

std::int64_t total_steps(const Recipe& recipe, const data::DrawStream& stream) {
  return recipe.trainer.steps ? *recipe.trainer.steps
                              : stream.steps_for_epochs(recipe.trainer.data_epochs.value_or(1.0));
}

bool due(std::int64_t step, std::int64_t every) {
  return every > 0 && step % every == 0;
}

}  // namespace

RlRun::RlRun(RlParts& parts,
             RunFolder folder,
             const std::optional<std::filesystem::path>& checkpoint)
    : parts_(parts), folder_(std::move(folder)), checkpoints_(folder_.checkpoints()) {
  const Recipe& recipe = parts.recipe();
  auto& session = parts.session;
  if (recipe.algorithm.kl.coefficient != 0) {
    reference_ = frozen_copy(session);  // before a checkpoint's weights come in: the start's model
  }
  optimizer_ = std::make_unique<trainer::AdamW>(adamw_config(recipe.optimizer),
                                                trainer::optimizer_parameters(*session.weights));
  state_.stream = parts.data->stream().state();
  if (checkpoint) {
    state_ = trainer::load_checkpoint(*checkpoint, *session.weights, *optimizer_);
    parts.data->stream().restore(state_.stream, (*checkpoint / "state.json").string());
    folder_.cut_back(state_.step);
    EventWriter::cut_back(event_file_of(folder_.path()), state_.step);
    checkpoints_.cut_back(state_.step);
    saved_step_ = state_.step;
  }
  if (recipe.log.tensorboard) {
    events_.emplace(event_file_of(folder_.path()));
  }
  if (parts.plan.sampled_rows > 0) {
    tape_ = std::make_unique<model::ActivationTape>(
        session.weights->config(), session.weights->dtype(), parts.plan.sampled_rows);
  }
  engine_ = make_engine(parts, tape_.get(), &spans_);
  total_steps_ = total_steps(recipe, parts.data->stream());
  const std::int64_t updates = total_steps_ * recipe.algorithm.epochs * recipe.trainer.minibatches;
  schedule_ = schedule_config(recipe.optimizer.schedule, recipe.optimizer.warmup_steps, updates);
  trainer::TrainStepConfig config;
  config.loss = loss_config(recipe);
  config.epochs = recipe.algorithm.epochs;
  config.minibatches = recipe.trainer.minibatches;
  config.rows_per_microbatch = parts.plan.rows_per_microbatch;
  config.keep_logits = parts.plan.keep_logits;
  config.keep_gradients = parts.plan.keep_buffers;
  config.tape = tape_.get();
  config.spans = &spans_;
  config.checkpoint_layers = parts.plan.checkpoint_layers;
  config.temperature = recipe.rollout.temperature;
  config.num_ids = session.num_ids;
  config.seed = static_cast<std::uint64_t>(recipe.seed);
  trainer_ = std::make_unique<trainer::PolicyTrainer>(
      *session.decoder, reference_.decoder.get(), *optimizer_, config);
}

int RlRun::run() {
  const Recipe& recipe = parts_.recipe();
  if (saved_step_ >= 0 && state_.recipe != recipe_yaml(recipe)) {
    TANDEM_LOG(warn,
               "{}: was begun with another recipe, its recipe.yaml; it will not go on bit for bit",
               folder_.path().string());
  }
  if (state_.step >= total_steps_) {
    TANDEM_LOG(info,
               "{}: all of its {} steps are done already; nothing is left to do",
               folder_.path().string(),
               total_steps_);
    return 0;
  }
  watch_for_signals();
  Progress progress("train", total_steps_, recipe.log.console);
  if (state_.step == 0 && recipe.trainer.validate_before && saved_step_ < 0) {
    Metrics metrics;
    validate_now(0, metrics);
    write_metrics(0, metrics);
  }
  int signal = noted_signal();
  while (state_.step < total_steps_ && signal == 0) {
    const std::int64_t step_number = state_.step + 1;
    Metrics metrics = step(step_number);
    finish_step(step_number, metrics);
    const auto fact = [&](const char* name) {
      const auto found = metrics.find(name);
      return found == metrics.end() ? std::string("-") : fmt::format("{:.3f}", found->second);
    };
    progress.update(step_number,
                    fmt::format("reward {}  loss {}  entropy {}  length {}  {} s",
                                fact("reward"),
                                fact("loss"),
                                fact("entropy"),
                                fact("completions/mean_length"),
                                fact("step_time")));
    signal = noted_signal();
  }
  if (recipe.trainer.checkpoint.every > 0 && saved_step_ != state_.step) {
    save_checkpoint();
  }
  if (signal == 0) {
    print_end();
    return 0;
  }
  write_report(folder_.path());
  TANDEM_LOG(warn,
             "signal {}: stopped after step {}; continue with --resume {}",
             signal,
             state_.step,
             folder_.path().string());
  return 128 + signal;
}

Metrics RlRun::step(std::int64_t step_number) {
  const Recipe& recipe = parts_.recipe();
  const Stopwatch whole;
  Metrics metrics;
  const auto step_span = spans_.scope("step");
  const auto before = engine_->scheduler().counters();
  std::vector<Group> groups;
  {
    const auto span = spans_.scope("rollout");
    if (tape_ != nullptr) {
      tape_->begin(parts_.session.weights->version());
    }
    groups = collect(*engine_,
                     parts_.session,
                     parts_.data->next_step(),
                     static_cast<std::int32_t>(recipe.rollout.samples_per_prompt),
                     sampling_params(recipe, parts_.session));
  }
  add_rollout_metrics(before, engine_->scheduler().counters(), metrics);
  metrics["rollout/kv_usage_max"] = engine_->take_kv_usage_peak();
  std::vector<GroupScore> scores;
  {
    const auto span = spans_.scope("reward");
    for (const auto& [name, value] : score_groups(*parts_.rewards, groups, step_number)) {
      metrics["rewards/logged/" + name] = value;
    }
    scores = score_advantages(groups, parts_.rewards->configs(), advantage_config(recipe));
  }
  const auto report = train(step_number, groups, scores);
  const auto record_span = spans_.scope("record");
  state_.step = step_number;
  state_.optimizer_steps = optimizer_->num_steps();
  state_.num_tokens += total_tokens(groups);
  state_.stream = parts_.data->stream().state();

  add_completion_metrics(groups, metrics);
  add_reward_metrics(groups, scores, parts_.rewards->configs(), metrics);
  add_train_metrics(report, reference_.decoder != nullptr, metrics);
  metrics["num_tokens"] = static_cast<double>(state_.num_tokens);
  metrics["epoch"] = parts_.data->stream().epoch();
  metrics["time/rollout_s"] = spans_.seconds("rollout");
  metrics["time/reward_s"] = spans_.seconds("reward");
  metrics["time/reference_s"] = report.reference_s;
  metrics["time/optimizer_s"] = report.optimizer_s;
  metrics["time/train_s"] = spans_.seconds("train") - report.optimizer_s - report.reference_s;
  metrics["rollout/tokens_per_s"] =
      static_cast<double>(sampled_tokens(groups)) / metrics["time/rollout_s"];
  metrics["train/tokens_per_s"] =
      static_cast<double>(report.sums.num_tokens) / spans_.seconds("train");
  if (due(step_number, recipe.log.completions_every) ||
      (step_number == 1 && recipe.log.completions_every > 0)) {
    folder_.write_completions(step_number, completion_lines(step_number, groups, scores));
  }
  warn(step_number, groups, metrics);
  metrics["step_time"] = whole.seconds();
  return metrics;
}

trainer::TrainStepReport RlRun::train(std::int64_t step_number,
                                      std::span<const Group> groups,
                                      std::span<const GroupScore> scores) {
  const auto span = spans_.scope("train");
  std::vector<trainer::TrainSequence> sequences;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].trajectories.size(); ++i) {
      const Trajectory& t = groups[g].trajectories[i];
      const bool truncated = t.finish_reason == FinishReason::kLength;
      sequences.push_back(
          {.trajectory = &t,
           .advantage = scores[g].advantages.advantages[i],
           .masked = scores[g].dropped || t.finish_reason == FinishReason::kError ||
                     (truncated && parts_.recipe().algorithm.mask_truncated),
           .label = fmt::format("step {}, {}", step_number, label_of(groups[g], t))});
    }
  }
  engine_->enter_train_phase();
  const double base = parts_.recipe().optimizer.learning_rate;
  auto report = trainer_->step(sequences, step_number, [&](std::int64_t update) {
    return trainer::learning_rate(schedule_, base, update);
  });
  if (tape_ != nullptr) {
    tape_->end();  // validation leaves nothing there
  }
  if (!parts_.plan.keep_buffers) {
    release_free_memory();
  }
  engine_->enter_rollout_phase();
  for (const auto& problem : report.problems) {
    TANDEM_LOG(warn, "{}", problem);
  }
  return report;
}

void RlRun::write_metrics(std::int64_t step_number, const Metrics& metrics) {
  folder_.append_metrics(step_number, metrics);
  if (events_) {
    events_->add_scalars(step_number, static_cast<double>(std::time(nullptr)), metrics);
  }
}

void RlRun::finish_step(std::int64_t step_number, Metrics& metrics) {
  const auto& section = parts_.recipe().trainer;
  if (due(step_number, section.validate_every) ||
      (section.validate_every > 0 && step_number == total_steps_)) {
    validate_now(step_number, metrics);
  }
  const auto& plan = parts_.plan;
  metrics["memory/peak_rss_bytes"] = static_cast<double>(peak_rss_bytes());
  metrics["memory/planned_bytes"] = static_cast<double>(plan.peak());
  metrics["memory/weights_bytes"] = static_cast<double>(plan.weights + plan.reference);
  metrics["memory/optimizer_bytes"] = static_cast<double>(plan.optimizer);
  metrics["memory/kv_bytes"] = static_cast<double>(engine_->kv_bytes());
  metrics["memory/activations_bytes"] = static_cast<double>(plan.activations);
  // Metrics are written before the step's own checkpoint, so this is of the one before them.
  metrics["time/checkpoint_s"] = std::exchange(checkpoint_s_, 0);
  write_metrics(step_number, metrics);
  folder_.append_trace(trace_lines(step_number, spans_.take()));
  if (note_best(step_number, metrics) || due(step_number, section.checkpoint.every)) {
    {
      const auto span = spans_.scope("checkpoint");
      save_checkpoint();
    }
    checkpoint_s_ = spans_.seconds("checkpoint");
    TANDEM_LOG(info, "step {}: checkpoint in {:.1f} s", step_number, checkpoint_s_);
    folder_.append_trace(trace_lines(step_number, spans_.take()));
  }
}

}  // namespace tandem::app
