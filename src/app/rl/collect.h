// Prompts to groups of trajectories, by the engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/session.h"
#include "protocol/trajectory.h"
#include "rollout/engine.h"

namespace tandem::app {

/// A prompt and its place in the data stream, which keys its random numbers.
struct DrawnPrompt {
  std::int64_t draw = 0;
  Prompt prompt;
};

/// Samples `num_samples` completions of each prompt. The groups come in the order of the prompts,
/// their trajectories in sample order, whatever order they finished in.
std::vector<Group> collect(rollout::Engine& engine,
                           const Session& session,
                           std::span<const DrawnPrompt> prompts,
                           std::int32_t num_samples,
                           const rollout::SamplingParams& params);

/// Detokenizers for stop strings. The session must outlive the factory.
rollout::TextSinkFactory text_sinks(const Session& session);

}  // namespace tandem::app
