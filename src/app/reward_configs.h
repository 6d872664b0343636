// Rewards as a recipe or the command line names them, as the settings of the rewards module.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/recipe.h"
#include "rewards/reward.h"

namespace tandem::app {

std::vector<rewards::RewardConfig> reward_configs(std::span<const RewardSection> sections);

/// Of `--reward` options: `kind[:key=value,...]`, `FILE.so[:name]`, `FILE.py:function`, or a YAML
/// file with a `rewards:` list. Throws UserError, also when two have one name.
std::vector<rewards::RewardConfig> reward_configs_of_specs(std::span<const std::string> specs);

}  // namespace tandem::app
