#include "base/thread_pool.h"

#include "base/error.h"

namespace tandem {
namespace {

// About 20 us: longer than the gap between two kernels, shorter than a scheduler's time slice.
constexpr int kSpins = 2000;

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

ThreadPool::ThreadPool(int num_threads) {
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
  busy_.store(static_cast<std::int32_t>(workers_.size()), std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  drain(loop);
  for (auto left = busy_.load(std::memory_order_acquire); left != 0;
       left = busy_.load(std::memory_order_acquire)) {
    wait_while_equal(busy_, left);
  }
  if (loop.error) {
    std::rethrow_exception(loop.error);
  }
}

void ThreadPool::work() {
  // The constructor runs before any loop, so every worker has seen generation 0.
  std::uint32_t seen = 0;
  while (true) {
    wait_while_equal(generation_, seen);
    ++seen;
    if (stopping_) {
      return;
    }
    drain(*loop_);
    busy_.fetch_sub(1, std::memory_order_release);
    busy_.notify_one();
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
