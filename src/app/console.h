// Standard error: log lines, and a bar on a terminal or plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tandem::app {

/// Sends log lines of level info and above to standard error, below the bar where there is one, and
/// to `also`, for a run's log.txt, where it is given.
void log_to_console(std::function<void(const std::string& line)> also = {});

/// "[#####.....]" with `width` cells, `done` of `total` filled.
std::string bar_text(std::int64_t done, std::int64_t total, int width);

/// "1:02:03", "2:03" or "0:03".
std::string duration_text(double seconds);

/// Progress of a long loop. On a terminal one line that is drawn over, else one line a call, at
/// most one every ten seconds besides the first and the last.
class Progress {
 public:
  /// `shown` false draws nothing at all.
  Progress(std::string title, std::int64_t total, bool shown);
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  /// `done` of the total are done; `facts` stands behind, "reward 0.41  loss 0.02".
  void update(std::int64_t done, std::string_view facts);

 private:
  using Clock = std::chrono::steady_clock;

  std::string title_;
  std::int64_t total_;
  bool shown_;
  std::int64_t first_done_ = -1;  // where this process started, for the time left
  Clock::time_point start_;
  Clock::time_point last_line_;
};

}  // namespace tandem::app
