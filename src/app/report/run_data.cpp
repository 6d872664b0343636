#include "app/report/run_data.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t kMaxCompletionFiles = 6;
constexpr std::size_t kMaxRowsOfStep = 64;

// The objects of a JSONL file; what is none is counted in a note. An absent file has none.
std::vector<Json> objects_of(const fs::path& file, std::vector<std::string>& notes) {
  std::vector<Json> objects;
  std::ifstream in(file, std::ios::binary);
  std::int64_t broken = 0;
  for (std::string line; std::getline(in, line);) {
    Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (object.is_object()) {
      objects.push_back(std::move(object));
    } else if (line.find_first_not_of(" \t\r") != std::string::npos) {
      ++broken;
    }
  }
  if (broken > 0) {
    notes.push_back(fmt::format("{}: {} {} could not be read and {} left out",
                                file.filename().string(),
                                broken,
                                broken == 1 ? "line" : "lines",
                                broken == 1 ? "is" : "are"));
  }
  return objects;
}

std::int64_t integer_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<std::int64_t>() : 0;
}

std::optional<double> number_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>())
                                                     : std::nullopt;
}

std::string text_of(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return "";
  }
  return found->is_string() ? found->get<std::string>() : found->dump();
}

void read_metrics(const fs::path& file, RunData& run) {
  std::map<std::int64_t, MetricsRow> by_step;
  std::int64_t not_finite = 0;
  for (const Json& object : objects_of(file, run.notes)) {
    if (!number_of(object, "step")) {
      continue;
    }
    MetricsRow row;
    row.step = integer_of(object, "step");
    for (const auto& [name, value] : object.items()) {
      if (value.is_number() && name != "step" && std::isfinite(value.get<double>())) {
        row.values[name] = value.get<double>();
      } else if (value.is_string()) {
        ++not_finite;  // "NaN", "Infinity"
      }
    }
    by_step[row.step] = std::move(row);
  }
  for (auto& [step, row] : by_step) {
    run.metrics.push_back(std::move(row));
  }
  if (not_finite > 0) {
    run.notes.push_back(fmt::format("metrics.jsonl: {} values are not finite", not_finite));
  }
  if (run.metrics.empty()) {
    run.notes.push_back("No step has ended yet: metrics.jsonl is missing or has no usable line.");
  }
}

std::string rewards_text(const Json& object) {
  std::string text;
  const Json rewards = object.value("rewards", Json::object());
  const Json failures = object.value("failures", Json::object());
  for (const auto& [name, value] : rewards.items()) {
    const auto failure = failures.find(name);
    std::string shown = value.is_number() ? fmt::format("{:.4g}", value.get<double>()) : "-";
    if (failure != failures.end() && failure->is_string()) {
      shown = "failed: " + failure->get<std::string>();
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, shown);
  }
  return text;
}

CompletionsOfStep read_completions(const fs::path& file, RunData& run) {
  CompletionsOfStep step;
  for (const Json& object : objects_of(file, run.notes)) {
    if (step.rows.size() == kMaxRowsOfStep) {
      break;
    }
    step.step = integer_of(object, "step");
    step.rows.push_back({integer_of(object, "draw"),
                         text_of(object, "prompt"),
                         text_of(object, "completion"),
                         text_of(object, "ground_truth"),
                         number_of(object, "reward"),
                         number_of(object, "advantage"),
                         text_of(object, "finish_reason"),
                         integer_of(object, "length"),
                         rewards_text(object)});
  }
  return step;
}

// The first, the last, and as many evenly between as fit.
std::vector<fs::path> some_of(const std::vector<fs::path>& files) {
  if (files.size() <= kMaxCompletionFiles) {
    return files;
  }
  std::vector<fs::path> some;
  for (std::size_t i = 0; i < kMaxCompletionFiles; ++i) {
    some.push_back(files[i * (files.size() - 1) / (kMaxCompletionFiles - 1)]);
  }
  return some;
}

void read_all_completions(const fs::path& folder, RunData& run) {
  std::set<fs::path> sorted;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().extension() == ".jsonl") {
      sorted.insert(entry.path());
    }
  }
  for (const fs::path& file : some_of({sorted.begin(), sorted.end()})) {
    auto step = read_completions(file, run);
    if (!step.rows.empty()) {
      run.completions.push_back(std::move(step));
    }
  }
}

void read_trace(const fs::path& file, RunData& run) {
  for (const Json& object : objects_of(file, run.notes)) {
    TraceSpan span;
    span.step = integer_of(object, "step");
    span.rank = integer_of(object, "rank");
    span.name = text_of(object, "name");
    span.start_s = number_of(object, "start_s").value_or(0);
    span.end_s = number_of(object, "end_s").value_or(0);
    span.depth = static_cast<int>(integer_of(object, "depth"));
    span.seconds = number_of(object, "seconds").value_or(span.end_s - span.start_s);
    span.count = std::max<std::int64_t>(integer_of(object, "count"), 1);
    run.trace.push_back(std::move(span));
  }
}

void read_facts(const fs::path& file, RunData& run) {
  std::error_code none;
  if (!fs::exists(file, none)) {
    return;
  }
  const Json object = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    run.notes.push_back("run.json could not be read");
    return;
  }
  for (const auto& [name, value] : object.items()) {
    run.facts.emplace_back(name, value.is_string() ? value.get<std::string>() : value.dump());
  }
}

}  // namespace

RunData read_run(const fs::path& folder) {
  std::error_code none;
  if (!fs::is_directory(folder, none)) {
    fail<UserError>("{}: no such run folder", folder.string());
  }
  if (!fs::exists(folder / "recipe.yaml", none) && !fs::exists(folder / "metrics.jsonl", none)) {
    fail<UserError>("{}: is no run folder, it has neither recipe.yaml nor metrics.jsonl",
                    folder.string());
  }
  RunData run;
  run.name = fs::weakly_canonical(folder).filename().string();
  read_metrics(folder / "metrics.jsonl", run);
  read_all_completions(folder / "completions", run);
  read_trace(folder / "trace.jsonl", run);
  read_facts(folder / "run.json", run);
  if (fs::exists(folder / "recipe.yaml", none)) {
    run.recipe = read_file(folder / "recipe.yaml");
  }
  return run;
}

}  // namespace tandem::app
