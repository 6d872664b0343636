// tandem train and tandem eval.
#include <memory>

#include <fmt/format.h>

#include "app/commands/compute_commands.h"
#include "app/console.h"
#include "app/jsonl.h"
#include "app/recipe.h"
#include "app/rl/records.h"
#include "app/rl/rl_run.h"
#include "app/rl/validation.h"
#include "app/run_folder.h"
#include "base/error.h"
#include "base/log.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

struct TrainOptions {
  std::string recipe, resume = "never";
  std::vector<std::string> overrides;
  std::optional<std::int64_t> threads;
  std::string isa_text, arithmetic;
  std::string json;
  bool dry_run = false;
};

LoadedRecipe load(const TrainOptions& options, Purpose purpose) {
  auto overrides = options.overrides;
  if (options.threads) {
    overrides.push_back(fmt::format("threads={}", *options.threads));
  }
  if (!options.isa_text.empty()) {
    overrides.push_back("isa=" + options.isa_text);
  }
  if (!options.arithmetic.empty()) {
    overrides.push_back("arithmetic=" + options.arithmetic);
  }
  return load_recipe(options.recipe, overrides, purpose);
}

std::string command_text(const TrainOptions& options) {
  std::string text = "tandem train " + options.recipe;
  for (const auto& override_text : options.overrides) {
    text += " " + override_text;
  }
  return text;
}

// The run folder to continue, or none for a new one.
std::optional<fs::path> folder_to_resume(const TrainOptions& options, const Recipe& recipe) {
  if (options.resume == "never") {
    return std::nullopt;
  }
  if (options.resume == "auto") {
    return RunFolder::newest_resumable(recipe.run.dir, recipe.run.name);
  }
  RunFolder::open(options.resume);
  return options.resume;
}

void print_plan(const RlParts& parts) {
  const auto& r = parts.recipe();
  LineWriter out("-");
  out.write("# effective recipe");
  out.write(recipe_yaml(r));
  out.write("# data");
  for (const auto& line : parts.data->summary()) {
    out.write(line);
  }
  out.write(fmt::format(
      "# a step: {} prompts x {} samples = {} sequences; {} updates of {} minibatches in {} passes",
      r.rollout.prompts_per_step,
      r.rollout.samples_per_prompt,
      r.rollout.prompts_per_step * r.rollout.samples_per_prompt,
      r.algorithm.epochs * r.trainer.minibatches,
      r.trainer.minibatches,
      r.algorithm.epochs));
  out.write(fmt::format("# an epoch: {} draws", parts.data->stream().draws_per_epoch()));
  out.write("# memory plan");
  out.write(parts.plan.to_text(parts.available_bytes));
  out.finish();
}

void log_plan(const RlParts& parts) {
  for (const auto& line : parts.data->summary()) {
    TANDEM_LOG(info, "{}", line);
  }
  const auto& r = parts.recipe();
  TANDEM_LOG(
      info,
      "a step: {} prompts x {} samples = {} sequences, {} updates; memory peak {} MB planned",
      r.rollout.prompts_per_step,
      r.rollout.samples_per_prompt,
      r.rollout.prompts_per_step * r.rollout.samples_per_prompt,
      r.algorithm.epochs * r.trainer.minibatches,
      parts.plan.peak() / 1'000'000);
}

int run_train(const TrainOptions& options) {
  auto loaded = load(options, Purpose::kTrain);
  const auto resume = folder_to_resume(options, loaded.recipe);
  const auto parts = make_rl_parts(std::move(loaded), Purpose::kTrain);
  if (options.dry_run) {
    print_plan(*parts);
    return 0;
  }
  std::optional<fs::path> checkpoint;
  if (resume) {
    checkpoint = trainer::CheckpointFolder(*resume / "checkpoints").latest();
    if (!checkpoint) {
      fail<UserError>("{}: has no checkpoint to resume from", resume->string());
    }
  }
  RunFolder folder = resume ? RunFolder::open(*resume)
                            : RunFolder::create(parts->recipe().run.dir, parts->recipe().run.name);
  if (!checkpoint) {
    folder.write_file("recipe.yaml", recipe_yaml(parts->recipe()));
    folder.write_file("run.json", run_json(parts->recipe(), command_text(options)));
  }
  RlRun run(*parts, folder, checkpoint);  // a damaged checkpoint ends here, with one line
  log_to_console(log_file_writer(folder.log_file()));
  log_plan(*parts);
  if (checkpoint) {
    TANDEM_LOG(info, "continues {} from {}", folder.path().string(), checkpoint->string());
  }
  return run.run();
}

int run_eval(const TrainOptions& options) {
  const auto parts = make_rl_parts(load(options, Purpose::kEval), Purpose::kEval);
  const auto engine = make_engine(*parts);
  const auto metrics = validate(*parts, *engine, 0, nullptr);
  JsonObject object;
  for (const auto& [name, value] : metrics) {
    object.add(name, value);
  }
  LineWriter out(options.json);
  out.write(object.str());
  out.finish();
  return 0;
}

}  // namespace

void set_up_train(CommandLine& line) {
  const auto options = std::make_shared<TrainOptions>();
  line.need_word("recipe", options->recipe, "YAML recipe");
  line.words("overrides", options->overrides, "keys to set, for example trainer.steps=5");
  line.add("--resume", options->resume, "auto, never, or the folder of a run");
  line.flag("--dry-run", options->dry_run, "check, print recipe and memory plan, touch nothing");
  line.add("--threads", options->threads, "compute threads");
  line.add("--isa", options->isa_text, "avx512, avx2 or portable");
  line.add("--arithmetic", options->arithmetic, "of bfloat16: widened or dot_bf16");
  line.run([options] { return run_train(*options); });
}

void set_up_eval(CommandLine& line) {
  const auto options = std::make_shared<TrainOptions>();
  line.need_word("recipe", options->recipe, "YAML recipe");
  line.words("overrides", options->overrides, "keys to set, for example validation.samples=8");
  line.add("--threads", options->threads, "compute threads");
  line.add("--isa", options->isa_text, "avx512, avx2 or portable");
  line.add("--arithmetic", options->arithmetic, "of bfloat16: widened or dot_bf16");
  line.add("--json", options->json, "a file for the scores as one JSON object, or -");
  line.run([options] { return run_eval(*options); });
}

}  // namespace tandem::app
