// The project's own compute threads: they spin a little for the next loop, then block.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace tandem {

/// Runs loops over tasks on a fixed number of threads, the caller's among them.
///
/// Which thread runs which task is not fixed, so tasks must write to places of their own: work is
/// split over outputs, never over a sum. One loop at a time; a loop started from inside a task runs
/// on the calling thread alone. Nobody waits for a thread that the system has not woken yet: where
/// cores are taken, the caller does all tasks by itself.
class ThreadPool {
 public:
  /// `num_threads` counts the caller; at least 1.
  explicit ThreadPool(int num_threads);
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;
  ~ThreadPool();

  [[nodiscard]] int num_threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `task(i)` for i in [0, num_tasks) and returns when all have ended. Rethrows the first
  /// exception of a task, after the loop.
  template <class Task>
  void parallel_for(std::int64_t num_tasks, Task&& task) {
    using T = std::remove_reference_t<Task>;
    const auto call = [](void* context, std::int64_t i) { (*static_cast<T*>(context))(i); };
    run(num_tasks, call, const_cast<void*>(static_cast<const void*>(std::addressof(task))));
  }

 private:
  using Call = void (*)(void* context, std::int64_t task);

  // A loop in progress; lives on the stack of its caller.
  struct Loop {
    Call call = nullptr;
    void* context = nullptr;
    std::int64_t num_tasks = 0;
    std::atomic<std::int64_t> next{0};
    std::mutex error_mutex;  // guards error
    std::exception_ptr error;
  };

  void run(std::int64_t num_tasks, Call call, void* context);
  void work();
  static void drain(Loop& loop);
  bool enter();
  void leave();

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_;                     // held by the caller for the length of a loop
  Loop* loop_ = nullptr;                      // published by generation_
  std::atomic<std::uint32_t> generation_{0};  // raised for every loop, and once to stop
  std::atomic<std::uint32_t> gate_;           // workers inside the current loop, and kClosed
  std::atomic<bool> stopping_{false};
};

/// The pool that the kernels use; one thread until `set_compute_threads`.
ThreadPool& compute_pool();

/// Replaces the compute pool. Only between computations; `main` calls it once, tests may again.
void set_compute_threads(int num_threads);

}  // namespace tandem
