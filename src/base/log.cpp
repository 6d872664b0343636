#include "base/log.h"

#include <ctime>
#include <mutex>

#include <fmt/chrono.h>

namespace tandem {
namespace {

struct LogState {
  std::mutex mutex;  // guards all below
  LogSink sink;
  LogLevel lowest = LogLevel::info;
  int rank = 0;
};

LogState& state() {
  static LogState instance;
  return instance;
}

constexpr std::string_view name_of(LogLevel level) {
  constexpr std::string_view kNames[] = {"debug", "info", "warn", "error"};
  return kNames[static_cast<int>(level)];
}

}  // namespace

void set_log_sink(LogSink sink, LogLevel lowest) {
  const std::lock_guard lock(state().mutex);
  state().sink = std::move(sink);
  state().lowest = lowest;
}

void set_log_rank(int rank) {
  const std::lock_guard lock(state().mutex);
  state().rank = rank;
}

bool log_enabled(LogLevel level) {
  const std::lock_guard lock(state().mutex);
  return state().sink && level >= state().lowest;
}

void log_line(LogLevel level, std::string_view file, int line, const std::string& text) {
  const std::string_view base = file.substr(file.find_last_of('/') + 1);
  const std::lock_guard lock(state().mutex);
  if (state().sink) {
    state().sink(level,
                 fmt::format("{:%Y-%m-%dT%H:%M:%SZ} {} {} {}:{}] {}",
                             fmt::gmtime(std::time(nullptr)),
                             state().rank,
                             name_of(level),
                             base,
                             line,
                             text));
  }
}

}  // namespace tandem
