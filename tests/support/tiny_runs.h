// Runs of recipes/tiny.yaml and its warm-up in a folder of a test's own.
#pragma once

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "support/program.h"

namespace tandem::test {

using Words = std::vector<std::string>;
using MetricLine = std::map<std::string, double>;

/// The lines of a run's metrics.jsonl, one a step.
inline std::vector<MetricLine> read_metrics(const std::filesystem::path& run) {
  std::vector<MetricLine> lines;
  std::istringstream in(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(nlohmann::json::parse(line).get<MetricLine>());
  }
  return lines;
}

/// What may differ between two runs of the same recipe: times, rates and memory.
inline bool is_measured(const std::string& name) {
  return name == "step_time" || name.starts_with("time/") || name.starts_with("memory/") ||
         name.ends_with("tokens_per_s");
}

/// The metrics that a run's recipe and seed determine.
inline std::vector<MetricLine> determined_metrics(const std::filesystem::path& run) {
  auto lines = read_metrics(run);
  for (auto& line : lines) {
    std::erase_if(line, [](const auto& entry) { return is_measured(entry.first); });
  }
  return lines;
}

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

/// The tiny task's data, and runs on it, all below one temporary folder.
class TinyRuns {
 public:
  TinyRuns() {
    const auto made = run_program({"make-data",
                                   "sequence",
                                   "--train",
                                   data("train"),
                                   "--validation",
                                   data("validation"),
                                   "--demonstrations",
                                   data("demonstrations")});
    REQUIRE_MESSAGE(made.status == 0, made.err);
  }

  [[nodiscard]] std::string data(const std::string& name) const {
    return (folder_ / (name + ".jsonl")).string();
  }
  [[nodiscard]] std::filesystem::path path(const std::string& name) const { return folder_ / name; }

  /// `tandem sft recipes/tiny-warmup.yaml` into the folder WARMUP.
  [[nodiscard]] Words warm_up(const Words& overrides = {}) const {
    return joined({"sft",
                   "recipes/tiny-warmup.yaml",
                   "sft.data.0.path=" + data("demonstrations"),
                   "run.dir=" + path("runs").string()},
                  overrides);
  }

  /// `tandem train recipes/tiny.yaml` on the warm-up's model, into the run folder `name`.
  [[nodiscard]] Words train(const std::string& name, const Words& overrides = {}) const {
    return joined({"train",
                   "recipes/tiny.yaml",
                   "model.path=" + (path("runs") / "tiny-warmup" / "model").string(),
                   "data.train.0.path=" + data("train"),
                   "data.validation.0.path=" + data("validation"),
                   "rewards.0.library=" TANDEM_PROGRESS_REWARD,
                   "run.dir=" + path("runs").string(),
                   "run.name=" + name},
                  overrides);
  }

  [[nodiscard]] std::filesystem::path run_folder(const std::string& name) const {
    return path("runs") / name;
  }

 private:
  TemporaryFolder folder_;
};

/// The bytes of the model that a run exported with its newest checkpoint.
inline std::string exported_weights(const std::filesystem::path& run) {
  std::string name = read_file(run / "checkpoints" / "latest");
  name.erase(name.find_last_not_of('\n') + 1);
  return read_file(run / "checkpoints" / name / "model" / "model.safetensors");
}

}  // namespace tandem::test
