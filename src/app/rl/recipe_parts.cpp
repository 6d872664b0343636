#include "app/rl/recipe_parts.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "app/compute.h"
#include "app/sampling_options.h"
#include "base/error.h"

namespace tandem::app {

trainer::PolicyLossConfig loss_config(const Recipe& recipe) {
  const auto& algorithm = recipe.algorithm;
  trainer::PolicyLossConfig loss = trainer::algorithm_preset(algorithm.name).loss;
  loss.clip_low = algorithm.clip_low.value_or(loss.clip_low);
  loss.clip_high = algorithm.clip_high.value_or(loss.clip_high);
  loss.clip_dual = algorithm.clip_dual.value_or(loss.clip_dual);
  if (algorithm.aggregation) {
    loss.aggregation = trainer::aggregation_from(*algorithm.aggregation);
  }
  loss.norm_length = static_cast<double>(recipe.rollout.max_new_tokens);
  loss.entropy_coefficient = algorithm.entropy_coefficient;
  loss.kl.coefficient = algorithm.kl.coefficient;
  loss.kl.estimator = trainer::kl_estimator_from(algorithm.kl.estimator);
  trainer::check_policy_loss(loss);
  return loss;
}

trainer::AdvantageConfig advantage_config(const Recipe& recipe) {
  return {.estimator = trainer::algorithm_preset(recipe.algorithm.name).estimator,
          .epsilon = recipe.algorithm.advantage_epsilon};
}

trainer::AdamWConfig adamw_config(const OptimizerSection& optimizer) {
  return {.beta1 = optimizer.betas[0],
          .beta2 = optimizer.betas[1],
          .epsilon = optimizer.epsilon,
          .weight_decay = optimizer.weight_decay,
          .max_grad_norm = optimizer.max_grad_norm};
}

trainer::ScheduleConfig schedule_config(const std::string& kind,
                                        std::int64_t warmup_steps,
                                        std::int64_t total_updates) {
  const trainer::ScheduleConfig schedule = {.kind = trainer::schedule_kind_from(kind),
                                            .warmup_steps = warmup_steps,
                                            .total_steps = total_updates};
  trainer::check_schedule(schedule);
  return schedule;
}

rollout::SamplingParams sampling_params(const Recipe& recipe, const Session& session) {
  const auto& section = recipe.rollout;
  rollout::SamplingParams params;
  params.temperature = section.temperature;
  params.top_p = section.top_p;
  params.min_p = section.min_p;
  params.top_k = static_cast<std::int32_t>(section.top_k);
  params.max_new_tokens = section.max_new_tokens;
  params.min_new_tokens = section.min_new_tokens;
  params.stop_strings = section.stop;
  params.seed = static_cast<std::uint64_t>(recipe.seed);
  params.repetition_penalty = section.repetition_penalty;
  params.frequency_penalty = section.frequency_penalty;
  params.presence_penalty = section.presence_penalty;
  for (const auto& entry : section.logit_bias) {
    params.logit_bias.emplace_back(token_ids(std::span(&entry.id, 1), "rollout.logit_bias").front(),
                                   static_cast<float>(entry.bias));
  }
  params.allowed_ids = token_ids(section.allowed_token_ids, "rollout.allowed_token_ids");
  params.banned_ids = token_ids(section.banned_token_ids, "rollout.banned_token_ids");
  return complete_sampling(std::move(params), section.bad_words, session);
}

data::RowConfig row_config(const Recipe& recipe, std::int64_t max_tokens) {
  const auto& section = recipe.data;
  data::RowConfig config;
  config.columns = {.prompt = section.columns.prompt,
                    .ground_truth = section.columns.ground_truth,
                    .source = section.columns.source,
                    .id = section.columns.id,
                    .completion = section.columns.completion};
  config.system = section.system;
  for (const auto& example : section.examples) {
    config.examples.push_back({"user", example.user});
    config.examples.push_back({"assistant", example.assistant});
  }
  config.prompt_template = section.prompt_template;
  config.chat = section.chat_template == "chat";
  config.max_tokens = max_tokens;
  config.overlong = data::overlong_from(section.overlong);
  return config;
}

data::TextModel text_model(const Session& session) {
  data::TextModel model;
  if (session.chat_template) {
    model.render = [&session](const std::vector<Message>& messages, bool add_generation_prompt) {
      nlohmann::ordered_json context;
      context["messages"] = nlohmann::ordered_json::array();
      for (const auto& message : messages) {
        context["messages"].push_back({{"role", message.role}, {"content", message.content}});
      }
      context["add_generation_prompt"] = add_generation_prompt;
      return session.chat_template->render(context);
    };
  }
  model.encode = [&tokenizer = session.need_tokenizer()](std::string_view text, bool special) {
    return tokenizer.encode(text, {.add_special_tokens = special});
  };
  model.stop_ids = session.stop_ids;
  return model;
}

std::int64_t max_prompt_tokens(const Recipe& recipe, const Session& session) {
  std::int64_t length = session.decoder->max_positions();
  length = std::min(length, recipe.rollout.max_model_len.value_or(length));
  const std::int64_t room = length - recipe.rollout.max_new_tokens;
  if (room < 1) {
    fail<UserError>("rollout.max_new_tokens: {} leave no room for a prompt in {} positions",
                    recipe.rollout.max_new_tokens,
                    length);
  }
  return std::min(room, recipe.data.max_prompt_tokens.value_or(room));
}

MemoryRequest memory_request(const Recipe& recipe,
                             const Session& session,
                             std::int64_t longest_prompt) {
  MemoryRequest request;
  request.config = session.decoder->config();
  request.with_reference = recipe.algorithm.kl.coefficient != 0;
  request.rows_per_microbatch = recipe.trainer.tokens_per_microbatch;
  request.prompts_per_step = recipe.rollout.prompts_per_step;
  request.samples_per_prompt = recipe.rollout.samples_per_prompt;
  request.max_prompt_tokens = longest_prompt;
  request.max_new_tokens = recipe.rollout.max_new_tokens;
  request.block_size = recipe.rollout.block_size;
  request.max_batched_tokens = recipe.rollout.max_batched_tokens;
  request.kv_bytes = recipe.rollout.kv_bytes.value_or(0);
  request.activation_checkpointing = recipe.trainer.activation_checkpointing;
  request.memory = recipe.trainer.memory;
  request.reuse_activations = recipe.trainer.reuse_activations;
  request.bytes_per_weight = static_cast<std::int64_t>(at::elementSize(session.weights->dtype()));
  // What is resident already is part of the plan: the weights, and the program with its data.
  const std::int64_t resident = resident_bytes();
  request.program_bytes = std::max<std::int64_t>(0, resident - session.weights->bytes());
  request.available_bytes = available_memory_bytes() + resident;
  return request;
}

Session open_model(const Recipe& recipe) {
  const SessionOptions options = {.dtype = recipe.model.dtype};
  if (recipe.model.init) {
    return init_session(
        recipe.model.init->config, static_cast<std::uint64_t>(recipe.model.init->seed), options);
  }
  return open_session(recipe.model.path, options);
}

}  // namespace tandem::app
