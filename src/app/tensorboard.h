// Metrics as a TensorBoard event file, written step by step and cut back on resume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace tandem::app {

/// The event file of `run_folder`: the newest one there, or the name that a new one gets,
/// events.out.tfevents.SECONDS.HOST.PID.0 with the seconds since 1970.
std::filesystem::path event_file_of(const std::filesystem::path& run_folder);

/// Writes scalars to an event file. Not thread safe; the thread that runs the steps owns it.
class EventWriter {
 public:
  /// Opens `file` and goes on at its end; a new one gets the record that names the format.
  /// Throws MachineError where it cannot be written.
  explicit EventWriter(const std::filesystem::path& file);

  /// One record for each scalar, under its name as the tag; handed to the system before the call
  /// returns. Values are stored as float32. `wall_time` in seconds since 1970. Throws MachineError
  /// (disk full).
  void add_scalars(std::int64_t step,
                   double wall_time,
                   const std::map<std::string, double>& scalars);

  /// Drops the records past `step` and a last record that was not written whole. A file that is
  /// absent stays absent.
  ///
  /// Throws UserError where the file is no event file, MachineError where it cannot be replaced.
  static void cut_back(const std::filesystem::path& file, std::int64_t step);

 private:
  void write(const std::string& bytes);

  std::string name_;
  std::ofstream out_;
};

}  // namespace tandem::app
