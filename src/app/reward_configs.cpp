#include "app/reward_configs.h"

#include <set>

#include "base/error.h"

namespace tandem::app {

std::vector<rewards::RewardConfig> reward_configs(std::span<const RewardSection> sections) {
  std::vector<rewards::RewardConfig> configs;
  for (const RewardSection& section : sections) {
    rewards::RewardConfig config;
    config.name = section.name;
    config.kind = section.kind;
    config.library = section.library;
    config.file = section.file;
    config.function = section.function;
    config.options = section.options.text;
    config.weight = section.weight;
    config.timeout_ms = section.timeout_ms;
    config.on_failure = section.on_failure;
    config.isolation = section.isolation;
    configs.push_back(std::move(config));
  }
  return configs;
}

std::vector<rewards::RewardConfig> reward_configs_of_specs(std::span<const std::string> specs) {
  std::vector<rewards::RewardConfig> configs;
  for (const std::string& spec : specs) {
    if (!spec.ends_with(".yaml") && !spec.ends_with(".yml")) {
      configs.push_back(rewards::parse_reward_spec(spec));
      continue;
    }
    for (rewards::RewardConfig& config : reward_configs(load_rewards(spec))) {
      rewards::check_reward_config(config);
      configs.push_back(std::move(config));
    }
  }
  std::set<std::string> names;
  for (const rewards::RewardConfig& config : configs) {
    if (!names.insert(config.name).second) {
      fail<UserError>("--reward: two rewards are named {}; give one another name (:name=...)",
                      config.name);
    }
  }
  return configs;
}

}  // namespace tandem::app
