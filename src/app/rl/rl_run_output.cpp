// What a run says to people: warnings while it goes, and the end's summary.
#include <algorithm>

#include <fmt/format.h>

#include "app/compute.h"
#include "app/jsonl.h"
#include "app/report/report.h"
#include "app/rl/rl_run.h"
#include "base/log.h"

namespace tandem::app {
namespace {

double value_or(const Metrics& metrics, const std::string& name, double otherwise) {
  const auto found = metrics.find(name);
  return found == metrics.end() ? otherwise : found->second;
}

std::string first_failure(std::span<const Group> groups) {
  for (const auto& group : groups) {
    for (const auto& t : group.trajectories) {
      for (const auto& [name, outcome] : t.rewards) {
        if (!outcome.failure.empty()) {
          return fmt::format("{} on {}: {}", name, label_of(group, t), outcome.failure);
        }
      }
    }
  }
  return {};
}

// One line of a text, short enough to show.
std::string excerpt(const std::string& text) {
  std::string line = text.substr(0, 100);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line.size() < text.size() ? line + "..." : line;
}

}  // namespace

void RlRun::warn(std::int64_t step, std::span<const Group> groups, const Metrics& metrics) const {
  if (const auto failure = first_failure(groups); !failure.empty()) {
    TANDEM_LOG(warn, "step {}: a reward failed: {}", step, excerpt(failure));
  }
  const bool has_reward = metrics.count("reward") == 1;
  if (!has_reward || (metrics.at("reward") == 0 && value_or(metrics, "reward_std", 0) == 0)) {
    const auto& group = groups.front();
    TANDEM_LOG(warn,
               "step {}: {}; the first completion, of {}, is '{}'",
               step,
               has_reward ? "all rewards are 0" : "no sample has a reward",
               group.prompt.id,
               excerpt(group.trajectories.front().text));
  }
  if (value_or(metrics, "completions/clipped_ratio", 0) > 0.9 &&
      value_or(metrics, "frac_reward_zero_std", 0) > 0.9) {
    TANDEM_LOG(warn,
               "step {}: nearly all completions end at rollout.max_new_tokens = {} and nearly all "
               "groups have equal rewards; raise it",
               step,
               parts_.recipe().rollout.max_new_tokens);
  }
  if (value_or(metrics, "numerics/logprob_gap_max", 0) != 0) {
    TANDEM_LOG(error,
               "step {}: sampler and trainer differ by {}; this is a fault of the program, please "
               "report it with the recipe",
               step,
               metrics.at("numerics/logprob_gap_max"));
  }
}

void RlRun::print_end() {
  LineWriter out("-");
  const auto before = samples_.find("before");
  const auto after = samples_.find("after");
  if (after != samples_.end()) {
    out.write("");
    for (std::size_t i = 0; i < after->second.size(); ++i) {
      const auto& sample = after->second[i];
      std::string line = fmt::format("{}  (right: {})", excerpt(sample.prompt), sample.truth);
      if (before != samples_.end() && i < before->second.size()) {
        line += fmt::format("\n  before: {}", excerpt(before->second[i].completion));
      }
      out.write(line + fmt::format("\n  after:  {}", excerpt(sample.completion)));
    }
  }
  for (const auto& [name, value] : last_validation_) {
    const auto first = first_validation_.find(name);
    out.write(first == first_validation_.end()
                  ? fmt::format("{}: {:.3f}", name, value)
                  : fmt::format("{}: {:.3f} before, {:.3f} after", name, first->second, value));
  }
  out.write(fmt::format("memory: {} MB at the peak, {} MB planned",
                        peak_rss_bytes() / 1'000'000,
                        parts_.plan.peak() / 1'000'000));
  out.write(fmt::format("report: {}", write_report(folder_.path()).string()));
  out.finish();
}

}  // namespace tandem::app
