#include "app/recipe_rules.h"

#include <cmath>
#include <set>

#include <fmt/format.h>

namespace tandem::app {
namespace {

using Problem = std::optional<RecipeProblem>;

template <class... Args>
Problem problem(std::string path, fmt::format_string<Args...> format, Args&&... args) {
  return RecipeProblem{std::move(path), fmt::format(format, std::forward<Args>(args)...)};
}

Problem check_model(const Recipe& r) {
  if (r.model.path.empty() == !r.model.init.has_value()) {
    return problem("model",
                   "{}; give one of model.path and model.init",
                   r.model.init ? "path and init are both given" : "no model is given");
  }
  return {};
}

Problem check_needed(const Recipe& r, Purpose purpose) {
  if (purpose == Purpose::kTrain && r.data.train.empty()) {
    return problem("data.train", "is missing; give a list of files, [{{path: FILE.jsonl}}]");
  }
  if (purpose == Purpose::kEval && r.data.validation.empty()) {
    return problem("data.validation", "is missing; eval needs a list of files");
  }
  if (purpose == Purpose::kSft && r.sft.data.empty()) {
    return problem("sft.data", "is missing; sft needs a list of files");
  }
  if (purpose != Purpose::kSft && r.rewards.empty()) {
    return problem("rewards", "is missing; give at least one, [{{kind: exact_match}}]");
  }
  if (purpose == Purpose::kTrain && !r.trainer.steps && !r.trainer.data_epochs) {
    return problem("trainer.steps", "is missing; give trainer.steps or trainer.data_epochs");
  }
  if (r.trainer.steps && r.trainer.data_epochs) {
    return problem("trainer.data_epochs", "trainer.steps is given too; give one of them");
  }
  return {};
}

// The trainer would compare with probabilities that the samples were not drawn from.
Problem check_shifts(const RolloutSection& rollout) {
  const char* shifting = rollout.repetition_penalty != 1.0  ? "repetition_penalty"
                         : rollout.frequency_penalty != 0.0 ? "frequency_penalty"
                         : rollout.presence_penalty != 0.0  ? "presence_penalty"
                         : !rollout.logit_bias.empty()      ? "logit_bias"
                                                            : nullptr;
  if (shifting == nullptr) {
    return {};
  }
  return problem(fmt::format("rollout.{}", shifting),
                 "moves the probabilities that samples are drawn from, which training has no "
                 "correction for; it is for eval and generate, remove it here");
}

Problem check_rollout(const Recipe& r, Purpose purpose) {
  const RolloutSection& rollout = r.rollout;
  if (rollout.min_new_tokens > rollout.max_new_tokens) {
    return problem("rollout.min_new_tokens",
                   "is {}, more than rollout.max_new_tokens, {}",
                   rollout.min_new_tokens,
                   rollout.max_new_tokens);
  }
  const std::int64_t prompt = r.data.max_prompt_tokens.value_or(1);
  if (rollout.max_model_len && prompt + rollout.max_new_tokens > *rollout.max_model_len) {
    return problem("rollout.max_model_len",
                   "is {}, less than a prompt of {} and {} new tokens",
                   *rollout.max_model_len,
                   prompt,
                   rollout.max_new_tokens);
  }
  if (rollout.speculation.prompt_lookup_min > rollout.speculation.prompt_lookup_max) {
    return problem("rollout.speculation.prompt_lookup_min",
                   "is {}, more than prompt_lookup_max, {}",
                   rollout.speculation.prompt_lookup_min,
                   rollout.speculation.prompt_lookup_max);
  }
  for (const std::string& text : rollout.stop) {
    if (text.empty()) {
      return problem("rollout.stop", "has an empty text, which would end every completion at once");
    }
  }
  if (purpose != Purpose::kTrain) {
    return {};
  }
  if (auto found = check_shifts(rollout)) {
    return found;
  }
  if (rollout.samples_per_prompt < 2) {
    return problem("rollout.samples_per_prompt",
                   "is 1; {} compares the samples of one prompt, give at least 2",
                   r.algorithm.name);
  }
  if (rollout.temperature == 0.0) {
    return problem("rollout.temperature",
                   "is 0, which makes all samples of a prompt alike; give a value above 0");
  }
  return {};
}

Problem check_trainer(const Recipe& r, Purpose purpose) {
  const std::int64_t samples = r.rollout.prompts_per_step * r.rollout.samples_per_prompt;
  if (r.trainer.minibatches > samples) {
    return problem("trainer.minibatches",
                   "is {}, more than the {} completions of a step",
                   r.trainer.minibatches,
                   samples);
  }
  const std::int64_t longest = r.data.max_prompt_tokens.value_or(1) + r.rollout.max_new_tokens;
  if (purpose == Purpose::kTrain && longest > r.trainer.tokens_per_microbatch) {
    return problem("trainer.tokens_per_microbatch",
                   "is {}, less than a sequence of {} tokens (data.max_prompt_tokens and "
                   "rollout.max_new_tokens)",
                   r.trainer.tokens_per_microbatch,
                   longest);
  }
  if (r.sft.max_tokens.value_or(0) > r.trainer.tokens_per_microbatch) {
    return problem("sft.max_tokens",
                   "is {}, more than trainer.tokens_per_microbatch, {}",
                   *r.sft.max_tokens,
                   r.trainer.tokens_per_microbatch);
  }
  for (const double beta : r.optimizer.betas) {
    if (beta >= 1.0) {
      return problem("optimizer.betas", "has {}; both must be below 1", beta);
    }
  }
  if (r.algorithm.name == "rloo" && r.algorithm.aggregation &&
      *r.algorithm.aggregation != "seq-mean-token-mean") {
    return problem("algorithm.aggregation",
                   "is {}; rloo weights whole sequences and needs seq-mean-token-mean",
                   *r.algorithm.aggregation);
  }
  if (r.trainer.checkpoint.best && r.trainer.validate_every == 0) {
    return problem("trainer.checkpoint.best", "needs trainer.validate_every above 0");
  }
  return {};
}

Problem check_validation(const Recipe& r) {
  if (r.validation.samples > 1 && r.validation.temperature == 0.0) {
    return problem("validation.samples",
                   "is {}, but at temperature 0 all samples are alike; set "
                   "validation.temperature",
                   r.validation.samples);
  }
  if (!r.data.prompt_template.empty() && r.data.prompt_template.find('{') == std::string::npos) {
    return problem("data.prompt_template",
                   "names no {{column}}, so that all prompts would be alike");
  }
  return {};
}

std::string name_of(const RewardSection& reward) {
  return !reward.name.empty()       ? reward.name
         : !reward.function.empty() ? reward.function
         : !reward.library.empty()  ? reward.library
                                    : reward.kind;
}

Problem check_rewards(const Recipe& r) {
  std::set<std::string> names;
  for (std::size_t i = 0; i < r.rewards.size(); ++i) {
    const RewardSection& reward = r.rewards[i];
    const std::string path = fmt::format("rewards.{}", i);
    if (reward.kind.empty() && reward.library.empty() && reward.file.empty()) {
      return problem(path, "needs one of kind, library and file");
    }
    if (!reward.library.empty() && !reward.file.empty()) {
      return problem(path, "library and file are both given; give one of them");
    }
    if (!names.insert(name_of(reward)).second) {
      return problem(reward.name.empty() ? path : path + ".name",
                     "a second reward named {}; give each a name of its own",
                     name_of(reward));
    }
    if (reward.isolation == "thread" && !reward.file.empty()) {
      return problem(path + ".isolation", "Python runs in a process only");
    }
  }
  return {};
}

}  // namespace

std::optional<RecipeProblem> find_problem(const Recipe& recipe, Purpose purpose) {
  if (auto found = check_model(recipe)) {
    return found;
  }
  if (auto found = check_needed(recipe, purpose)) {
    return found;
  }
  if (auto found = check_rollout(recipe, purpose)) {
    return found;
  }
  if (auto found = check_trainer(recipe, purpose)) {
    return found;
  }
  if (auto found = check_validation(recipe)) {
    return found;
  }
  return check_rewards(recipe);
}

}  // namespace tandem::app
