// The folder of one run: recipe, metrics, trace, completions, checkpoints, log.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>

namespace tandem::app {

/// What a run writes, step by step, and how it is cut back to a step when the run is resumed.
///
/// metrics.jsonl and trace.jsonl have lines with a "step"; completions/step-000010.jsonl one file a
/// step. Lines are flushed when a step ends, so a kill loses the current step alone. Errors while
/// writing are MachineErrors that name the file.
class RunFolder {
 public:
  /// Makes DIR/NAME, or DIR/NAME-2, NAME-3 ... where that exists. Throws MachineError when DIR
  /// cannot be written.
  static RunFolder create(const std::filesystem::path& dir, const std::string& name);

  /// An existing run. Throws UserError when it is none.
  static RunFolder open(const std::filesystem::path& folder);

  /// The newest DIR/NAME[-k] that has a checkpoint, or none.
  static std::optional<std::filesystem::path> newest_resumable(const std::filesystem::path& dir,
                                                               const std::string& name);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::filesystem::path checkpoints() const { return path_ / "checkpoints"; }
  [[nodiscard]] std::filesystem::path log_file() const { return path_ / "log.txt"; }

  void write_file(const std::string& name, const std::string& content) const;

  /// Adds a line {"step": step, ...metrics} to metrics.jsonl.
  void append_metrics(std::int64_t step, const std::map<std::string, double>& metrics) const;

  /// Adds lines to trace.jsonl; each is a JSON object with a "step".
  void append_trace(std::span<const std::string> lines) const;

  /// Writes completions/step-NNNNNN.jsonl whole.
  void write_completions(std::int64_t step, const std::string& lines) const;

  /// Deletes what lies past `step`: lines, also a broken last one, and completions files.
  void cut_back(std::int64_t step) const;

 private:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}
  void append(const std::string& name, const std::string& text) const;

  std::filesystem::path path_;
};

/// Appends lines to a log file; what cannot be written is dropped, for a log must not end a run.
std::function<void(const std::string& line)> log_file_writer(const std::filesystem::path& file);

}  // namespace tandem::app
