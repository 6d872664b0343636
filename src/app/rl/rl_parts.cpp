#include <ATen/ATen.h>

#include "app/compute.h"
#include "app/reward_configs.h"
#include "app/rl/recipe_parts.h"
#include "app/rl/rl_run.h"
#include "app/rl/validation.h"
#include "app/sampling_options.h"
#include "base/error.h"

namespace tandem::app {

namespace {

// A cache that the longest group can never fit in is refused here, before anything is written.
void check_cache(const RlParts& parts) {
  const auto engine = make_engine(parts);
  rollout::GroupRequest longest;
  longest.prompt.assign(static_cast<std::size_t>(parts.data->longest_prompt()), 0);
  longest.num_samples = static_cast<std::int32_t>(parts.recipe().rollout.samples_per_prompt);
  longest.params = sampling_params(parts.recipe(), parts.session);
  engine->add(std::move(longest));
}

}  // namespace

std::unique_ptr<RlParts> make_rl_parts(LoadedRecipe loaded, Purpose purpose) {
  auto parts = std::make_unique<RlParts>(RlParts{std::move(loaded), {}, {}, {}, {}, 0});
  const Recipe& recipe = parts->recipe();
  parts->rewards = std::make_unique<rewards::RewardSet>(reward_configs(recipe.rewards));
  set_up_compute({recipe.threads.value_or(0), recipe.isa, recipe.arithmetic});
  parts->session = open_model(recipe);
  parts->data = std::make_unique<PromptData>(recipe, parts->session);
  auto request = memory_request(recipe, parts->session, parts->data->longest_prompt());
  request.training = purpose == Purpose::kTrain;
  parts->available_bytes = request.available_bytes;
  parts->plan = plan_memory(request);
  check_cache(*parts);
  return parts;
}

std::unique_ptr<rollout::Engine> make_engine(const RlParts& parts,
                                             model::ActivationTape* tape,
                                             SpanRecorder* spans) {
  const auto& section = parts.recipe().rollout;
  rollout::EngineConfig config;
  config.kv_bytes = parts.plan.kv;
  config.tape = tape;
  config.spans = spans;
  config.block_size = static_cast<std::int32_t>(section.block_size);
  config.max_batched_tokens = parts.plan.max_batched_tokens;
  config.max_model_len = section.max_model_len.value_or(0);
  config.num_ids = parts.session.num_ids;
  const auto& drafts = section.speculation;
  config.speculation = SpeculationOptions{.method = drafts.method,
                                          .num_tokens = drafts.num_speculative_tokens,
                                          .lookup_max = drafts.prompt_lookup_max,
                                          .lookup_min = drafts.prompt_lookup_min}
                           .config();
  return std::make_unique<rollout::Engine>(
      *parts.session.decoder, config, text_sinks(parts.session));
}

Metrics validate(RlParts& parts,
                 rollout::Engine& engine,
                 std::int64_t step,
                 std::vector<Group>* groups) {
  const auto& section = parts.recipe().validation;
  auto params = sampling_params(parts.recipe(), parts.session);
  params.temperature = section.temperature;
  const auto prompts = parts.data->validation(section.max_prompts);
  auto sampled =
      collect(engine, parts.session, prompts, static_cast<std::int32_t>(section.samples), params);
  score_groups(*parts.rewards, sampled, step);
  // Training must not find validation's blocks: a resumed run would not have them.
  engine.forget_prefixes();
  auto metrics = validation_metrics(sampled, parts.rewards->configs());
  if (groups != nullptr) {
    *groups = std::move(sampled);
  }
  return metrics;
}

}  // namespace tandem::app
