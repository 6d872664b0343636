#include "base/thread_pool.h"

#include "base/error.h"

namespace tandem {
namespace {

// About 20 us: longer than the gap between two kernels, shorter than a scheduler's time slice.
constexpr int kSpins = 2000;

// In `gate_`: the loop takes no further workers. Its caller may then return once all have left.
constexpr std::uint32_t kClosed = 1U << 31;

thread_local bool inside_task = false;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Waits until `value` differs from `old`: spinning first, then blocked in the kernel.
template <class T>
void wait_while_equal(const std::atomic<T>& value, T old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) {
      return;
    }
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

std::unique_ptr<ThreadPool>& pool_slot() {
  static auto slot = std::make_unique<ThreadPool>(1);
  return slot;
}

}  // namespace

ThreadPool::ThreadPool(int num_threads) : gate_(kClosed) {
  TANDEM_CHECK(num_threads >= 1, "num_threads is {}", num_threads);
  for (int i = 1; i < num_threads; ++i) {
    workers_.emplace_back([this] { work(); });
  }
}

ThreadPool::~ThreadPool() {
  stopping_ = true;
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (auto& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::drain(Loop& loop) {
  inside_task = true;
  for (auto i = loop.next.fetch_add(1); i < loop.num_tasks; i = loop.next.fetch_add(1)) {
    try {
      loop.call(loop.context, i);
    } catch (...) {
      const std::lock_guard lock(loop.error_mutex);
      if (!loop.error) {
        loop.error = std::current_exception();
      }
    }
  }
  inside_task = false;
}

void ThreadPool::run(std::int64_t num_tasks, Call call, void* context) {
  if (num_tasks <= 1 || workers_.empty() || inside_task) {
    for (std::int64_t i = 0; i < num_tasks; ++i) {
      call(context, i);
    }
    return;
  }
  const std::lock_guard lock(loop_mutex_);
  Loop loop;
  loop.call = call;
  loop.context = context;
  loop.num_tasks = num_tasks;
  loop_ = &loop;
  gate_.store(0, std::memory_order_release);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  drain(loop);
  auto inside = gate_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
  while (inside != kClosed) {
    wait_while_equal(gate_, inside);
    inside = gate_.load(std::memory_order_acquire);
  }
  if (loop.error) {
    std::rethrow_exception(loop.error);
  }
}

// False when the loop was closed before this worker came to it.
bool ThreadPool::enter() {
  auto inside = gate_.load(std::memory_order_relaxed);
  while ((inside & kClosed) == 0) {
    if (gate_.compare_exchange_weak(inside, inside + 1, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

void ThreadPool::leave() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) {
    gate_.notify_one();
  }
}

void ThreadPool::work() {
  // The constructor runs before any loop, so every worker has seen generation 0.
  std::uint32_t seen = 0;
  while (true) {
    wait_while_equal(generation_, seen);
    seen = generation_.load(std::memory_order_acquire);
    if (stopping_) {
      return;
    }
    if (enter()) {  // perhaps a later loop than the one that woke it: as good
      drain(*loop_);
      leave();
    }
  }
}

ThreadPool& compute_pool() {
  return *pool_slot();
}

void set_compute_threads(int num_threads) {
  if (num_threads != pool_slot()->num_threads()) {
    pool_slot() = std::make_unique<ThreadPool>(num_threads);
  }
}

}  // namespace tandem
