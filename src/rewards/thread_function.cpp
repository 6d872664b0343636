#include "rewards/thread_function.h"

#include <algorithm>
#include <thread>

#include "base/error.h"
#include "rewards/library_function.h"

namespace tandem::rewards {
namespace {

constexpr std::size_t kMaxThreads = 8;
constexpr std::size_t kSamplesPerThread = 32;  // fewer are not worth starting a thread for

}  // namespace

ThreadFunction::ThreadFunction(const RewardConfig& config)
    : function_(load_function(config)),
      thread_safe_(config.kind == "library" && is_thread_safe(*function_)) {}

void ThreadFunction::score_range(std::span<const RewardSample> samples,
                                 std::int64_t step,
                                 std::int64_t deadline_ms,
                                 std::span<Score> scores) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    try {
      scores[i] = checked(function_->score(samples.subspan(i, 1), step, deadline_ms), 1).front();
    } catch (const std::exception& error) {
      scores[i].failure = error.what();
    } catch (...) {
      scores[i].failure = "an exception that is not a std::exception";
    }
  }
}

std::vector<Score> ThreadFunction::score(std::span<const RewardSample> samples,
                                         std::int64_t step,
                                         std::int64_t deadline_ms) {
  if (function_->batched() && samples.size() > 1) {
    try {
      return checked(function_->score(samples, step, deadline_ms), samples.size());
    } catch (const std::exception&) {
      // One by one below, so that a sample which cannot be scored costs only itself.
    }
  }
  std::vector<Score> scores(samples.size());
  const std::size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t num_threads = thread_safe_ ? std::clamp(samples.size() / kSamplesPerThread,
                                                            std::size_t{1},
                                                            std::min(kMaxThreads, cores))
                                               : 1;
  const std::size_t per_thread = (samples.size() + num_threads - 1) / num_threads;
  std::vector<std::thread> threads;
  for (std::size_t start = per_thread; start < samples.size(); start += per_thread) {
    const std::size_t count = std::min(per_thread, samples.size() - start);
    threads.emplace_back([=, this, &scores] {
      score_range(samples.subspan(start, count),
                  step,
                  deadline_ms,
                  std::span(scores).subspan(start, count));
    });
  }
  score_range(samples.first(std::min(per_thread, samples.size())), step, deadline_ms, scores);
  for (std::thread& thread : threads) {
    thread.join();
  }
  return scores;
}

}  // namespace tandem::rewards
