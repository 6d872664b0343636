#include "app/recipe.h"

#include "app/recipe_rules.h"
#include "base/error.h"
#include "config/config.h"

namespace tandem::app {
namespace {

// A file of its own for rewards: the one key that `tandem reward --reward FILE.yaml` reads.
struct RewardsFile {
  std::vector<RewardSection> rewards;

  template <class V>
  void visit(V& v) {
    v("rewards", rewards, doc("The list."), required());
  }
};

constexpr std::string_view kReferenceHead = R"(# Recipes

A recipe is a YAML file; the tables below list every key, its default and its meaning. They are
printed from the structs that read it (`tandem_recipe_reference`), and a test keeps them true.

    tandem train recipes/x.yaml trainer.steps=5 rewards.0.weight=2

`table.key=value` behind the file overrides a key; a number in the path is the index of a list's
item. Numbers may be written `1e3` where a whole one is wanted.

An unknown key, a value out of range, a key of a later version, and a key that nothing in the chosen
combination reads (a KL estimator without a coefficient) are errors with file and line. `--dry-run`
prints the effective recipe, and each run folder keeps it as `recipe.yaml`.

)";

}  // namespace

void LoadedRecipe::refuse(std::string_view path, std::string_view message) const {
  fail<UserError>("{}: {}: {}", document.place(path), path, message);
}

LoadedRecipe load_recipe(const std::filesystem::path& file,
                         std::span<const std::string> overrides,
                         Purpose purpose) {
  LoadedRecipe loaded{{}, config::Document::load(file)};
  for (const std::string& assignment : overrides) {
    loaded.document.apply_override(assignment);
  }
  loaded.recipe = config::read<Recipe>(loaded.document);
  if (const auto problem = find_problem(loaded.recipe, purpose)) {
    loaded.refuse(problem->path, problem->message);
  }
  if (const auto problem = find_unread_key(loaded.recipe)) {
    loaded.refuse(problem->path, problem->message);
  }
  if (loaded.recipe.run.name.empty()) {
    loaded.recipe.run.name = file.stem().string();
  }
  const std::string& name = loaded.recipe.run.name;
  if (name.find('/') != std::string::npos || name.starts_with('.')) {
    loaded.refuse("run.name",
                  "is a path or starts with a dot; name the folder that holds the runs in run.dir");
  }
  return loaded;
}

std::vector<RewardSection> load_rewards(const std::filesystem::path& file) {
  const auto document = config::Document::load(file);
  if (document.root().entries.size() == 1 && document.root().find("rewards") != nullptr) {
    return config::read<RewardsFile>(document).rewards;
  }
  const auto recipe = config::read<Recipe>(document);
  if (recipe.rewards.empty()) {
    fail<UserError>("{}: has no rewards: list", file.string());
  }
  return recipe.rewards;
}

std::string recipe_yaml(const Recipe& recipe) {
  return config::to_yaml(recipe);
}

std::string recipe_reference() {
  Recipe recipe;
  return std::string(kReferenceHead) + config::describe_fields(config::fields_of(recipe));
}

}  // namespace tandem::app
