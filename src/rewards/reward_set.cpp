// RewardSet: starts all functions, calls them side by side, applies their failure policies.
#include <algorithm>
#include <exception>
#include <set>
#include <thread>

#include "base/error.h"
#include "base/log.h"
#include "rewards/function.h"
#include "rewards/policy.h"
#include "rewards/process/spawner.h"
#include "rewards/process/worker_client.h"
#include "rewards/process/worker_main.h"
#include "rewards/reward.h"
#include "rewards/thread_function.h"

namespace tandem::rewards {
namespace {

// One configured function, in a worker or in this process.
struct Entry {
  Policy policy;
  std::unique_ptr<WorkerClient> worker;        // isolation process, and probe of the other
  std::unique_ptr<ThreadFunction> in_process;  // isolation thread
  RewardStats stats;
  bool warned_all_zero = false;

  std::vector<Score> score(std::span<const RewardSample> samples,
                           const RewardConfig& config,
                           std::int64_t step) {
    return in_process ? in_process->score(samples, step, config.timeout_ms)
                      : worker->score(samples, step);
  }
};

// The failures as they are, the numbers as the policy says.
void apply_policy(Entry& entry, std::vector<Score>& scores) {
  entry.stats.scored += static_cast<std::int64_t>(scores.size());
  entry.stats.restarts = entry.worker ? entry.worker->restarts() : 0;
  for (Score& score : scores) {
    if (!score.failure.empty()) {
      ++entry.stats.failures;
      score.value = entry.policy.fill;
    }
  }
}

// What a user should hear of: failures, and a reward that says 0 to everything.
void report(Entry& entry,
            const RewardConfig& config,
            std::span<const RewardSample> samples,
            const std::vector<Score>& scores) {
  const auto failed = std::find_if(
      scores.begin(), scores.end(), [](const Score& score) { return !score.failure.empty(); });
  const auto index = static_cast<std::size_t>(failed - scores.begin());
  if (failed != scores.end()) {
    const auto count = std::count_if(
        scores.begin(), scores.end(), [](const Score& score) { return !score.failure.empty(); });
    TANDEM_LOG(warn,
               "reward {}: failed on {} of {} samples; first on sample {}: {}",
               config.name,
               count,
               scores.size(),
               samples[index].id,
               failed->failure);
  }
  const bool all_zero = std::all_of(scores.begin(), scores.end(), [](const Score& score) {
    return score.failure.empty() && score.value == 0.0;
  });
  if (all_zero && scores.size() > 1 && !std::exchange(entry.warned_all_zero, true)) {
    TANDEM_LOG(warn,
               "reward {}: 0 for all {} samples; the first completion is: {:.200}",
               config.name,
               scores.size(),
               samples.front().completion);
  }
}

}  // namespace

struct RewardSet::Impl {
  std::vector<RewardConfig> configs;
  std::unique_ptr<Spawner> spawner;  // outlives the workers of `entries`
  std::vector<Entry> entries;

  void start();
  std::vector<std::vector<Score>> run(std::span<const RewardSample> samples, std::int64_t step);
};

void RewardSet::Impl::start() {
  spawner = std::make_unique<Spawner>([this](int index, int socket) {
    const RewardConfig& config = configs[static_cast<std::size_t>(index)];
    return config.kind == "python" ? run_python_worker(config, socket)
                                   : run_native_worker(config, socket);
  });
  entries.resize(configs.size());
  for (std::size_t i = 0; i < configs.size(); ++i) {  // all load at the same time
    entries[i].policy = parse_policy(configs[i]);
    entries[i].worker = std::make_unique<WorkerClient>(configs[i], *spawner, static_cast<int>(i));
  }
  for (std::size_t i = 0; i < configs.size(); ++i) {
    entries[i].worker->wait_until_loaded();
    if (configs[i].isolation == "thread") {
      // A file that crashes when loaded has crashed the worker by now, not this process.
      entries[i].worker.reset();
      entries[i].in_process = std::make_unique<ThreadFunction>(configs[i]);
    }
  }
}

std::vector<std::vector<Score>> RewardSet::Impl::run(std::span<const RewardSample> samples,
                                                     std::int64_t step) {
  std::vector<std::vector<Score>> all(entries.size());
  std::vector<std::exception_ptr> errors(entries.size());
  const auto run_one = [&](std::size_t i) {
    try {
      all[i] = entries[i].score(samples, configs[i], step);
    } catch (...) {
      errors[i] = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    threads.emplace_back(run_one, i);
  }
  if (!entries.empty()) {
    run_one(0);
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) {
      std::rethrow_exception(error);
    }
  }
  return all;
}

RewardSet::RewardSet(std::vector<RewardConfig> configs) : impl_(std::make_unique<Impl>()) {
  std::set<std::string> names;
  for (RewardConfig& config : configs) {
    check_reward_config(config);
    if (!names.insert(config.name).second) {
      fail<UserError>("two rewards are named {}; give each a name of its own", config.name);
    }
  }
  impl_->configs = std::move(configs);
  if (!impl_->configs.empty()) {
    impl_->start();
  }
}

RewardSet::~RewardSet() = default;

std::vector<std::vector<Score>> RewardSet::score(std::span<const RewardSample> samples,
                                                 std::int64_t step) {
  if (samples.empty()) {
    return std::vector<std::vector<Score>>(impl_->entries.size());
  }
  auto all = impl_->run(samples, step);
  for (std::size_t f = 0; f < all.size(); ++f) {
    apply_policy(impl_->entries[f], all[f]);
    report(impl_->entries[f], impl_->configs[f], samples, all[f]);
  }
  for (std::size_t f = 0; f < all.size(); ++f) {
    for (std::size_t i = 0; impl_->entries[f].policy.stop && i < all[f].size(); ++i) {
      TANDEM_CHECK(all[f][i].failure.empty(),
                   "reward {}, sample {}: {} (on_failure is error)",
                   impl_->configs[f].name,
                   samples[i].id,
                   all[f][i].failure);
    }
  }
  return all;
}

const std::vector<RewardConfig>& RewardSet::configs() const {
  return impl_->configs;
}

RewardStats RewardSet::stats(std::size_t function) const {
  return impl_->entries.at(function).stats;
}

}  // namespace tandem::rewards
