#include "app/console.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>

#include <fmt/format.h>
#include <unistd.h>

#include "base/log.h"

namespace tandem::app {
namespace {

constexpr const char* kClearLine = "\r\033[K";

// The line that is drawn over, so that a log line can go before it.
struct Screen {
  std::mutex mutex;  // guards bar and the order of writes to standard error
  std::string bar;
};

Screen& screen() {
  static Screen instance;
  return instance;
}

bool on_terminal() {
  return ::isatty(STDERR_FILENO) == 1;
}

void put(const std::string& text) {
  std::fputs(text.c_str(), stderr);
}

void put_line(const std::string& line) {
  const std::lock_guard lock(screen().mutex);
  put(screen().bar.empty() ? line + "\n" : kClearLine + line + "\n" + screen().bar);
}

}  // namespace

void log_to_console(std::function<void(const std::string& line)> also) {
  set_log_sink([also](LogLevel, const std::string& line) {
    put_line(line);
    if (also) {
      also(line);
    }
  });
}

std::string bar_text(std::int64_t done, std::int64_t total, int width) {
  const double share = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0.0;
  const auto filled =
      static_cast<int>(std::lround(std::clamp(share, 0.0, 1.0) * static_cast<double>(width)));
  return fmt::format("[{:#<{}}{:.<{}}]", "", filled, "", width - filled);
}

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::max(0.0, seconds) + 0.5);
  const std::int64_t hours = whole / 3600;
  const std::int64_t minutes = whole / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60)
                   : fmt::format("{}:{:02}", minutes, whole % 60);
}

Progress::Progress(std::string title, std::int64_t total, bool shown)
    : title_(std::move(title)), total_(total), shown_(shown), start_(Clock::now()) {}

Progress::~Progress() {
  if (shown_ && on_terminal()) {
    const std::lock_guard lock(screen().mutex);
    put(screen().bar.empty() ? "" : "\n");
    screen().bar.clear();
  }
}

void Progress::update(std::int64_t done, std::string_view facts) {
  if (!shown_) {
    return;
  }
  const auto now = Clock::now();
  const bool first = first_done_ < 0;
  first_done_ = first ? std::max<std::int64_t>(done - 1, 0) : first_done_;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const auto here = static_cast<double>(std::max<std::int64_t>(done - first_done_, 1));
  const double left = elapsed / here * static_cast<double>(total_ - done);
  if (on_terminal()) {
    const std::lock_guard lock(screen().mutex);
    screen().bar = fmt::format("{}{} {} {}/{} {} left  {}",
                               kClearLine,
                               title_,
                               bar_text(done, total_, 24),
                               done,
                               total_,
                               duration_text(left),
                               facts);
    put(screen().bar);
    return;
  }
  if (first || done == total_ || now - last_line_ >= std::chrono::seconds(10)) {
    last_line_ = now;
    put_line(fmt::format("{} {}/{} {} left  {}", title_, done, total_, duration_text(left), facts));
  }
}

}  // namespace tandem::app
