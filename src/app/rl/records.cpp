#include "app/rl/records.h"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <torch/headeronly/version.h>

#include "app/compute.h"
#include "app/jsonl.h"
#include "app/machine_facts.h"
#include "app/version.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"

namespace tandem::app {
namespace {

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

std::string reward_value(const std::optional<double>& value) {
  return value ? json_number(*value) : "null";
}

std::string completion_line(std::int64_t step,
                            const Group& group,
                            const GroupScore& score,
                            std::size_t index) {
  const Trajectory& t = group.trajectories[index];
  JsonObject rewards, failures, extra;
  for (const auto& [name, outcome] : t.rewards) {
    rewards.add_json(name, reward_value(outcome.value));
    if (!outcome.failure.empty()) {
      failures.add(name, outcome.failure);
    }
  }
  for (const auto& [column, text] : t.extra) {
    extra.add(column, text);
  }
  JsonObject object;
  object.add("step", step)
      .add("draw", group.draw)
      .add("prompt_id", group.prompt.id)
      .add("source", group.prompt.source)
      .add("sample", std::int64_t{t.sample})
      .add("prompt", group.prompt.text)
      .add("completion", t.text)
      .add("ground_truth", group.prompt.ground_truth)
      .add_json("reward", reward_value(score.rewards[index]))
      .add("advantage", score.advantages.advantages[index])
      .add("finish_reason", name_of(t.finish_reason))
      .add("length", t.completion_length())
      .add_json("rewards", rewards.str())
      .add_json("failures", failures.str());
  if (!extra.empty()) {
    object.add_json("extra", extra.str());
  }
  return object.str() + "\n";
}

}  // namespace

std::string completion_lines(std::int64_t step,
                             std::span<const Group> groups,
                             std::span<const GroupScore> scores) {
  std::string text;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (std::size_t i = 0; i < groups[g].trajectories.size(); ++i) {
      text += completion_line(step, groups[g], scores[g], i);
    }
  }
  return text;
}

std::vector<std::string> trace_lines(std::int64_t step, std::span<const SpanRecord> spans) {
  std::vector<std::string> lines;
  for (const auto& span : spans) {
    JsonObject object;
    object.add("step", step)
        .add("rank", 0)
        .add("name", span.name)
        .add("start_s", span.start_s)
        .add("end_s", span.end_s)
        .add("depth", span.depth)
        .add("seconds", span.seconds)
        .add("count", span.count);
    lines.push_back(object.str());
  }
  return lines;
}

std::string run_json(const Recipe& recipe, const std::string& command) {
  JsonObject object;
  object.add("version", version_text())
      .add("commit", version_commit())
      .add("command", command)
      .add("seed", recipe.seed)
      .add("started", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))))
      .add("host", host_name())
      .add("cpu", cpu_name())
      .add("threads", std::int64_t{compute_pool().num_threads()})
      .add("isa", kernels::name_of(kernels::isa()))
      .add("arithmetic", kernels::name_of(kernels::arithmetic()))
      .add("libtorch", TORCH_VERSION);
  return object.str() + "\n";
}

}  // namespace tandem::app
