#include "app/tensorboard.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <unistd.h>

#include "app/tensorboard_records.h"
#include "base/atomic_file.h"
#include "base/error.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kNamePrefix = "events.out.tfevents.";

double seconds_since_1970() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

std::int64_t seconds_in_name(const std::string& name) {
  return std::strtoll(name.c_str() + kNamePrefix.size(), nullptr, 10);
}

}  // namespace

fs::path event_file_of(const fs::path& run_folder) {
  std::pair<std::int64_t, std::string> newest;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kNamePrefix)) {
      newest = std::max(newest, {seconds_in_name(name), name});
    }
  }
  if (!newest.second.empty()) {
    return run_folder / newest.second;
  }
  return run_folder / fmt::format("{}{}.{}.{}.0",
                                  kNamePrefix,
                                  static_cast<std::int64_t>(seconds_since_1970()),
                                  host_name(),
                                  ::getpid());
}

EventWriter::EventWriter(const fs::path& file)
    : name_(file.string()), out_(file, std::ios::binary | std::ios::app) {
  if (!out_) {
    fail<MachineError>("{}: cannot be written: {}", name_, std::strerror(errno));
  }
  if (out_.seekp(0, std::ios::end).tellp() == 0) {
    write(frame_record(encode_version_event(seconds_since_1970())));
  }
}

void EventWriter::add_scalars(std::int64_t step,
                              double wall_time,
                              const std::map<std::string, double>& scalars) {
  std::string bytes;
  for (const auto& [tag, value] : scalars) {
    bytes += frame_record(encode_scalar_event(step, wall_time, tag, static_cast<float>(value)));
  }
  write(bytes);
}

void EventWriter::cut_back(const fs::path& file, std::int64_t step) {
  std::error_code error;
  if (!fs::exists(file, error)) {
    return;
  }
  const std::string bytes = read_file(file);
  const RecordScan scan = scan_records(bytes);
  if (scan.records.empty() && scan.end == RecordScan::End::kDamaged) {
    fail<UserError>("{}: is not a TensorBoard event file; move it away to go on without it",
                    file.string());
  }
  std::string kept;
  for (std::size_t i = 0; i < scan.records.size(); ++i) {
    if (i == 0 || step_of_event(scan.records[i]) <= step) {  // the first one names the format
      kept += frame_record(scan.records[i]);
    }
  }
  if (kept.size() != bytes.size()) {
    write_file_atomic(file, kept);
  }
}

void EventWriter::write(const std::string& bytes) {
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out_.flush();
  if (!out_) {
    fail<MachineError>("{}: cannot be written: {}", name_, std::strerror(errno));
  }
}

}  // namespace tandem::app
