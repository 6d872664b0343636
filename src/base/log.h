// One line an event, to a sink that `main` sets: TANDEM_LOG(info, "step {} took {:.1f} ms", step,
// ms).
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace tandem {

enum class LogLevel { debug, info, warn, error };

/// Receives finished lines, already with UTC time, rank, level and place.
using LogSink = std::function<void(LogLevel level, const std::string& line)>;

/// Sets where lines go and which are dropped. Without a sink nothing is printed. Thread safe.
void set_log_sink(LogSink sink, LogLevel lowest = LogLevel::info);

/// The number in front of each line; 0 unless the launcher says otherwise.
void set_log_rank(int rank);

[[nodiscard]] bool log_enabled(LogLevel level);
void log_line(LogLevel level, std::string_view file, int line, const std::string& text);

}  // namespace tandem

#define TANDEM_LOG(level, ...)                                                        \
  do {                                                                                \
    if (::tandem::log_enabled(::tandem::LogLevel::level)) {                           \
      ::tandem::log_line(                                                             \
          ::tandem::LogLevel::level, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                 \
  } while (false)
