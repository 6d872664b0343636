// What a recipe must say for a command, and which keys nothing in it would read.
#pragma once

#include <optional>
#include <string>

#include "app/recipe.h"

namespace tandem::app {

struct RecipeProblem {
  std::string path;  // of the key to blame
  std::string message;
};

/// The first thing wrong with `recipe` over several keys, or nothing.
std::optional<RecipeProblem> find_problem(const Recipe& recipe, Purpose purpose);

/// A key that differs from its default although nothing in the chosen combination reads it.
std::optional<RecipeProblem> find_unread_key(const Recipe& recipe);

}  // namespace tandem::app
