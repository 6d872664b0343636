// How a command computes: threads, instruction set, allocator.
#pragma once

#include <cstdint>
#include <string>

namespace tandem::app {

struct ComputeSettings {
  std::int64_t threads = 0;         // 0: all cores that the process may use
  std::string isa = "auto";         // auto, avx512, avx2, portable
  std::string arithmetic = "auto";  // auto, widened, dot_bf16
};

/// Sets the process up. Called once, after worker processes were forked and before the first
/// tensor.
void set_up_compute(const ComputeSettings& settings);

/// Cores that the process may use.
std::int64_t usable_cores();

/// Largest resident size of the process so far, and the one of now.
std::int64_t peak_rss_bytes();
std::int64_t resident_bytes();

/// Gives freed memory, which the allocator keeps otherwise, back to the system.
void release_free_memory();

/// Memory that the system could still give, of /proc/meminfo and the cgroup's limit.
std::int64_t available_memory_bytes();

}  // namespace tandem::app
