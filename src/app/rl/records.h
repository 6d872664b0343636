// What a run writes down of a step: completions and spans as JSON lines, and run.json.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "app/recipe.h"
#include "app/rl/score.h"
#include "base/spans.h"
#include "protocol/trajectory.h"

namespace tandem::app {

/// One line a trajectory: prompt, completion, rewards, advantage, how it ended.
std::string completion_lines(std::int64_t step,
                             std::span<const Group> groups,
                             std::span<const GroupScore> scores);

/// One line a span.
std::vector<std::string> trace_lines(std::int64_t step, std::span<const SpanRecord> spans);

/// Version, machine, libraries, seed and command line of the run, as one JSON object.
std::string run_json(const Recipe& recipe, const std::string& command);

}  // namespace tandem::app
