// A recipe: everything that a run is told, read from YAML and checked before anything starts.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/recipe/algorithm_section.h"
#include "app/recipe/data_section.h"
#include "app/recipe/model_section.h"
#include "app/recipe/rollout_section.h"
#include "app/recipe/trainer_section.h"
#include "config/document.h"

namespace tandem::app {

struct Recipe {
  std::int64_t seed = 0;
  std::optional<std::int64_t> threads;
  std::string isa = "auto";
  std::string arithmetic = "auto";
  RunSection run;
  ModelSection model;
  DataSection data;
  RolloutSection rollout;
  std::vector<RewardSection> rewards;
  AlgorithmSection algorithm;
  OptimizerSection optimizer;
  TrainerSection trainer;
  ValidationSection validation;
  ParallelSection parallel;
  SftSection sft;
  LogSection log;

  template <class V>
  void visit(V& v) {
    v("seed", seed, doc("Of everything random in the run."), at_least(0));
    v("threads", threads, doc("Compute threads."), at_least(1), unset_means("all cores"));
    v("isa",
      isa,
      doc("Instruction set of the kernels; `auto`: the best the machine has."),
      one_of({"auto", "avx512", "avx2", "portable"}));
    v("arithmetic",
      arithmetic,
      doc("How products of bfloat16 are summed: `widened` to float32, with the same bits on all "
          "instruction sets, or `dot_bf16`, by the instruction vdpbf16ps (needs `isa` avx512). "
          "`auto`: `dot_bf16` on AMD processors that have it, else `widened`. A bfloat16 run is "
          "resumed under its own arithmetic alone."),
      one_of({"auto", "widened", "dot_bf16"}));
    v("run", run, doc("Where the run's files go."));
    v("model", model, doc("What is trained."));
    v("data", data, doc("Where prompts come from. Paths are relative to the current folder."));
    v("rollout", rollout, doc("How completions are sampled."));
    v("rewards", rewards, doc("The reward is the sum of weight times value."));
    v("algorithm", algorithm, doc("From rewards to a loss."));
    v("optimizer", optimizer, doc("From gradients to weights."));
    v("trainer", trainer, doc("How long, in what portions, and what is kept."));
    v("validation", validation, doc("How data.validation is sampled; `eval` does the same."));
    v("parallel", parallel, doc("Ranks of a run with several processes."));
    v("sft", sft, doc("Supervised training: `tandem sft`. The optimizer's other keys hold."));
    v("log", log, doc("What is shown and written while the run goes on."));
  }
};

/// The command that a recipe is read for. Each checks the whole recipe; what its own part needs
/// must be there.
enum class Purpose { kTrain, kSft, kEval };

/// A recipe together with the places of its keys.
struct LoadedRecipe {
  Recipe recipe;
  config::Document document;

  /// Throws UserError `FILE:LINE: path: message`, for what shows only once model or data are known.
  [[noreturn]] void refuse(std::string_view path, std::string_view message) const;
};

/// Reads `file`, puts the overrides ("trainer.steps=5") in, and checks it for `purpose`. An empty
/// run.name becomes the file's name. Throws UserError with file and line.
LoadedRecipe load_recipe(const std::filesystem::path& file,
                         std::span<const std::string> overrides,
                         Purpose purpose);

/// The `rewards:` list of a YAML file that holds nothing else, or a whole recipe.
std::vector<RewardSection> load_rewards(const std::filesystem::path& file);

/// The effective recipe: every key with its value. Reads back as the same recipe.
std::string recipe_yaml(const Recipe& recipe);

/// docs/recipes.md.
std::string recipe_reference();

}  // namespace tandem::app
