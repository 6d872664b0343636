#include "app/compute.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

#include <malloc.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <ATen/Parallel.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

std::int64_t number_in(const std::string& file) {
  std::ifstream in(file);
  std::int64_t value = 0;
  return in >> value ? value : kUnlimited;
}

std::int64_t meminfo_available() {
  std::ifstream in("/proc/meminfo");
  std::string key, unit;
  std::int64_t value = 0;
  while (in >> key >> value) {
    std::getline(in, unit);
    if (key == "MemAvailable:") {
      return value * 1024;
    }
  }
  return kUnlimited;
}

std::int64_t cgroup_available() {
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current");
  return limit == kUnlimited || used == kUnlimited ? kUnlimited
                                                   : std::max<std::int64_t>(limit - used, 0);
}

// Grows the heap, in addresses alone, and asks for large pages there: all tensors then lie on pages
// of 2 MB, which spares faults when they are first written and misses when they are read.
void reserve_heap() {
  constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;
  const auto size = static_cast<std::size_t>(available_memory_bytes() / 2);
  void* const block = std::malloc(size);
  if (block == nullptr) {
    return;  // it works without
  }
  const auto first = (reinterpret_cast<std::uintptr_t>(block) + kPage - 1) / kPage * kPage;
  const auto end = (reinterpret_cast<std::uintptr_t>(block) + size) / kPage * kPage;
  if (first < end) {
    ::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  }
  std::free(block);
}

}  // namespace

std::int64_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return ::sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(CPU_COUNT(&set), 1) : 1;
}

void set_up_compute(const ComputeSettings& settings) {
  if (settings.threads < 0 || settings.threads > 1024) {
    fail<UserError>("threads is {}; use 1 to 1024, or 0 for all cores", settings.threads);
  }
  // Activations are freed and taken again each step; giving them back to the system would cost a
  // page fault for every 4 KB of them.
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, -1);
  reserve_heap();
  kernels::set_arithmetic(settings.isa, settings.arithmetic);
  at::set_num_threads(
      1);  // the kernels have their own pool; a second team of spinning threads hurts
  const std::int64_t threads = settings.threads == 0 ? usable_cores() : settings.threads;
  set_compute_threads(static_cast<int>(threads));
}

std::int64_t peak_rss_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  return in >> size >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

void release_free_memory() {
  ::malloc_trim(0);
  reserve_heap();
}

std::int64_t available_memory_bytes() {
  return std::min(meminfo_available(), cgroup_available());
}

}  // namespace tandem::app
