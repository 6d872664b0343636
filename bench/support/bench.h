// Times of a piece of work over some repetitions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <ctime>
#include <vector>

namespace tandem::bench {

struct Times {
  double best_s = 0;  // what the machine can do; the others tell how busy it was
  double p10_s = 0;
  double median_s = 0;
  double p90_s = 0;
};

/// Seconds on the wall, or with `cpu` those in which the process ran: for one thread on a machine
/// that others use too.
inline double now_s(bool cpu) {
  timespec t{};
  clock_gettime(cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// Calls `work` once to warm up, then until `seconds` have passed, at least five times.
template <class Work>
Times measure(Work&& work, double seconds, bool cpu) {
  work();
  std::vector<double> times;
  for (double total = 0; total < seconds || times.size() < 5;) {
    const double start = now_s(cpu);
    work();
    times.push_back(now_s(cpu) - start);
    total += times.back();
  }
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  };
  return {times.front(), at(0.1), at(0.5), at(0.9)};
}

}  // namespace tandem::bench
