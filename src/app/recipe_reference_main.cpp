// Prints docs/recipes.md: tandem_recipe_reference > docs/recipes.md
#include <cstdio>

#include "app/recipe.h"

int main() {
  std::fputs(tandem::app::recipe_reference().c_str(), stdout);
}
