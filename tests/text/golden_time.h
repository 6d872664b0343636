// The clock under which the golden renderings were made.
#pragma once

#include <ctime>

namespace tandem::test {

/// 2025-07-10 12:00, a Thursday.
inline std::tm golden_time() {
  std::tm time{};
  time.tm_year = 125;
  time.tm_mon = 6;
  time.tm_mday = 10;
  time.tm_hour = 12;
  time.tm_wday = 4;
  time.tm_yday = 190;
  return time;
}

}  // namespace tandem::test
