// How a command computes: threads, instruction set, allocator.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::app {

struct ComputeSettings {
  std::int64_t threads = 0;  // 0: all cores that the process may use
  std::string isa = "auto";  // auto, avx512, avx2, portable
};

/// Sets the process up. Called once, after worker processes were forked and before the first
/// tensor.
void set_up_compute(const ComputeSettings& settings);

/// Cores that the process may use.
std::int64_t usable_cores();

/// Largest resident size of the process so far.
std::int64_t peak_rss_bytes();

/// Memory that the system could still give, of /proc/meminfo and the cgroup's limit.
std::int64_t available_memory_bytes();

}  // namespace tandem::app
