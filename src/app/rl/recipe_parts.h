// The recipe's sections as the settings of the parts that read them.
#pragma once

#include <optional>
#include <vector>

#include "app/memory_plan.h"
#include "app/recipe.h"
#include "app/session.h"
#include "data/row_reader.h"
#include "data/text_model.h"
#include "rollout/sampling_params.h"
#include "trainer/advantages.h"
#include "trainer/loss_settings.h"
#include "trainer/optimizer.h"
#include "trainer/schedule.h"

namespace tandem::app {

/// The preset of algorithm.name with the parts that the recipe sets.
trainer::PolicyLossConfig loss_config(const Recipe& recipe);
trainer::AdvantageConfig advantage_config(const Recipe& recipe);

trainer::AdamWConfig adamw_config(const OptimizerSection& optimizer);

/// `total_updates` are those of the whole run.
trainer::ScheduleConfig schedule_config(const std::string& kind,
                                        std::int64_t warmup_steps,
                                        std::int64_t total_updates);

/// How training samples; validation changes samples and temperature.
rollout::SamplingParams sampling_params(const Recipe& recipe, const Session& session);

/// `max_tokens`: the limit that data.overlong is about.
data::RowConfig row_config(const Recipe& recipe, std::int64_t max_tokens);

/// The session's template and tokenizer as `data` wants them. The session must outlive it.
data::TextModel text_model(const Session& session);

/// Longest prompt: data.max_prompt_tokens, else what the positions leave beside the new tokens.
/// Throws UserError when nothing is left.
std::int64_t max_prompt_tokens(const Recipe& recipe, const Session& session);

/// The memory that a training run asks for, given the longest prompt of its data.
MemoryRequest memory_request(const Recipe& recipe,
                             const Session& session,
                             std::int64_t longest_prompt);

/// Opens what the recipe's model section names.
Session open_model(const Recipe& recipe);

}  // namespace tandem::app
