#include "app/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/jsonl.h"
#include "base/atomic_file.h"
#include "base/error.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMetrics = "metrics.jsonl";
constexpr const char* kTrace = "trace.jsonl";
constexpr const char* kRecipe = "recipe.yaml";

// The step of a line, or nothing for a broken one.
std::optional<std::int64_t> step_of(const std::string& line) {
  const auto object = nlohmann::json::parse(line, nullptr, false);
  if (!object.is_object() || !object.contains("step") || !object["step"].is_number_integer()) {
    return std::nullopt;
  }
  return object["step"].get<std::int64_t>();
}

void keep_lines_up_to(const fs::path& file, std::int64_t step) {
  if (!fs::exists(file)) {
    return;
  }
  std::istringstream in(read_file(file));
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const auto line_step = step_of(line);
    if (line_step && *line_step <= step) {
      kept += line + "\n";
    }
  }
  write_file_atomic(file, kept);
}

std::optional<std::int64_t> step_of_file(const fs::path& file) {
  const std::string name = file.filename().string();
  std::int64_t step = 0;
  if (!name.starts_with("step-") || !(std::istringstream(name.substr(5)) >> step)) {
    return std::nullopt;
  }
  return step;
}

fs::path numbered(const fs::path& dir, const std::string& name, int number) {
  return dir / (number == 1 ? name : fmt::format("{}-{}", name, number));
}

}  // namespace

RunFolder RunFolder::create(const fs::path& dir, const std::string& name) {
  std::error_code error;
  fs::create_directories(dir, error);
  for (int number = 1; number < 100'000 && !error; ++number) {
    // create_directory says whether it was this call that made it, so two runs never share one.
    if (fs::create_directory(numbered(dir, name, number), error)) {
      const fs::path path = numbered(dir, name, number);
      fs::create_directory(path / "completions", error);
      return RunFolder(path);
    }
  }
  fail<MachineError>("run.dir: {} cannot be written: {}",
                     dir.string(),
                     error ? error.message() : "all names are taken");
}

RunFolder RunFolder::open(const fs::path& folder) {
  if (!fs::exists(folder / kRecipe)) {
    fail<UserError>("{}: is no run folder, it has no {}", folder.string(), kRecipe);
  }
  return RunFolder(folder);
}

std::optional<fs::path> RunFolder::newest_resumable(const fs::path& dir, const std::string& name) {
  std::optional<fs::path> newest;
  for (int number = 1; fs::exists(numbered(dir, name, number)); ++number) {
    if (fs::exists(numbered(dir, name, number) / "checkpoints" / "latest")) {
      newest = numbered(dir, name, number);
    }
  }
  return newest;
}

void RunFolder::write_file(const std::string& name, const std::string& content) const {
  write_file_atomic(path_ / name, content);
}

void RunFolder::append(const std::string& name, const std::string& text) const {
  const fs::path file = path_ / name;
  std::ofstream out(file, std::ios::app | std::ios::binary);
  out << text;
  out.close();
  if (!out) {
    fail<MachineError>("{}: cannot be written: {}", file.string(), std::strerror(errno));
  }
}

void RunFolder::append_metrics(std::int64_t step,
                               const std::map<std::string, double>& metrics) const {
  JsonObject object;
  object.add("step", step);
  for (const auto& [name, value] : metrics) {
    object.add(name, value);
  }
  append(kMetrics, object.str() + "\n");
}

void RunFolder::append_trace(std::span<const std::string> lines) const {
  std::string text;
  for (const auto& line : lines) {
    text += line + "\n";
  }
  append(kTrace, text);
}

void RunFolder::write_completions(std::int64_t step, const std::string& lines) const {
  write_file_atomic(path_ / "completions" / fmt::format("step-{:06}.jsonl", step), lines);
}

void RunFolder::cut_back(std::int64_t step) const {
  keep_lines_up_to(path_ / kMetrics, step);
  keep_lines_up_to(path_ / kTrace, step);
  remove_leftovers(path_);
  remove_leftovers(path_ / "completions");
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(path_ / "completions", error)) {
    const auto file_step = step_of_file(entry.path());
    if (file_step && *file_step > step) {
      std::error_code ignored;
      fs::remove(entry.path(), ignored);
    }
  }
}

std::function<void(const std::string& line)> log_file_writer(const fs::path& file) {
  const auto out = std::make_shared<std::ofstream>(file, std::ios::app);
  return [out](const std::string& line) { *out << line << std::endl; };
}

}  // namespace tandem::app
