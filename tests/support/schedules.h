// Groups of requests run under different schedules, and their results compared bit for bit.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "rollout/engine.h"

namespace tandem::test {

/// How the same requests are run. No entry may change a bit of what a sample is.
struct Schedule {
  std::string name;
  std::int64_t max_batched_tokens = 2048;
  std::int64_t max_sequences = 256;
  std::int32_t block_size = 16;
  bool prefix_cache = true;
  bool shuffled = false;
  bool alone = false;           // one request at a time
  bool separate = false;        // a request for each sample instead of forks of one
  bool preempt_always = false;  // the keys of every sample are thrown away after each step
  std::int64_t num_drafts = 0;  // guessed tokens a step
  int threads = 1;
};

inline std::vector<Schedule> all_schedules() {
  std::vector<Schedule> all = {
      {.name = "one token a step", .max_batched_tokens = 1, .separate = true},
      {.name = "chunks of 7", .max_batched_tokens = 7},
      {.name = "chunks of 16", .max_batched_tokens = 16},
      {.name = "chunks of 64", .max_batched_tokens = 64},
      {.name = "blocks of 4", .block_size = 4},
      {.name = "blocks of 32", .block_size = 32},
      {.name = "no prefix cache", .prefix_cache = false},
      {.name = "another order", .shuffled = true},
      {.name = "one request at a time", .alone = true},
      {.name = "a request for each sample", .separate = true},
      {.name = "separate, no cache, chunks of 5",
       .max_batched_tokens = 5,
       .prefix_cache = false,
       .separate = true},
      {.name = "preempted after every step", .preempt_always = true},
      {.name = "preempted after every step, no prefix cache",
       .prefix_cache = false,
       .preempt_always = true},
      {.name = "guessed tokens", .num_drafts = 4},
      {.name = "guessed tokens, chunks of 7", .max_batched_tokens = 7, .num_drafts = 3},
      {.name = "2 threads", .threads = 2},
      {.name = "4 threads, chunks of 11", .max_batched_tokens = 11, .threads = 4}};
  for (const std::int64_t batch : {1, 2, 3, 5, 8, 13}) {
    all.push_back({.name = "batches of " + std::to_string(batch) + ", another order",
                   .max_sequences = batch,
                   .shuffled = true,
                   .separate = true});
  }
  return all;
}

using SampleKey = std::pair<std::int64_t, std::int32_t>;  // draw, sample
using Samples = std::map<SampleKey, rollout::FinishedSample>;

inline constexpr std::int64_t kScheduleGroups = 5;
inline constexpr std::int32_t kScheduleSamples = 3;

/// The prompt of a group: they are of many lengths, and begin alike.
inline std::vector<TokenId> schedule_prompt(std::int64_t draw, std::int64_t num_ids) {
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < 5 + 13 * draw; ++i) {
    ids.push_back(static_cast<TokenId>((i < 20 ? 7 + 3 * i : i * 37 + draw * 11) % num_ids));
  }
  return ids;
}

inline std::vector<rollout::GroupRequest> schedule_requests(const Schedule& schedule,
                                                            const rollout::SamplingParams& params,
                                                            std::int64_t num_ids) {
  std::vector<rollout::GroupRequest> all;
  for (std::int64_t draw = 0; draw < kScheduleGroups; ++draw) {
    for (std::int32_t s = 0; s < (schedule.separate ? kScheduleSamples : 1); ++s) {
      rollout::GroupRequest request;
      request.draw = draw;
      request.first_sample = s;
      request.num_samples = schedule.separate ? 1 : kScheduleSamples;
      request.prompt = schedule_prompt(draw, num_ids);
      request.params = params;
      all.push_back(std::move(request));
    }
  }
  if (schedule.shuffled) {
    std::reverse(all.begin(), all.end());
    std::swap(all[1], all[3]);
  }
  return all;
}

inline rollout::EngineConfig schedule_engine(const Schedule& schedule, std::int64_t num_ids) {
  rollout::EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.block_size = schedule.block_size;
  config.max_batched_tokens = schedule.max_batched_tokens;
  config.max_sequences = schedule.max_sequences;
  config.num_ids = num_ids;
  config.prefix_cache = schedule.prefix_cache;
  config.speculation = {.num_tokens = schedule.num_drafts, .lookup_max = 3, .lookup_min = 1};
  config.check_invariants = true;
  return config;
}

/// Runs the groups to their end on `engine`.
inline Samples run_schedule(rollout::Engine& engine,
                            const Schedule& schedule,
                            const rollout::SamplingParams& params,
                            std::int64_t num_ids) {
  Samples samples;
  const auto keep = [&](std::vector<rollout::FinishedSample> finished) {
    for (auto& sample : finished) {
      samples[{sample.draw, sample.sample}] = std::move(sample);
    }
  };
  for (auto& request : schedule_requests(schedule, params, num_ids)) {
    engine.add(std::move(request));
    if (schedule.alone) {
      keep(engine.run());
    }
  }
  while (engine.has_work()) {
    keep(engine.step());
    for (std::int64_t draw = 0; schedule.preempt_always && draw < kScheduleGroups; ++draw) {
      for (std::int32_t s = 0; s < kScheduleSamples; ++s) {
        engine.scheduler().preempt(draw, s);
      }
    }
  }
  return samples;
}

/// The same on an engine of its own, with the schedule's number of threads.
inline Samples run_schedule(model::Decoder& decoder,
                            const Schedule& schedule,
                            const rollout::SamplingParams& params,
                            std::int64_t num_ids) {
  set_compute_threads(schedule.threads);
  rollout::Engine engine(decoder, schedule_engine(schedule, num_ids), nullptr);
  return run_schedule(engine, schedule, params, num_ids);
}

inline bool same_floats(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Whether ids and log-probabilities are the same bits.
inline bool same_samples(const Samples& a, const Samples& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](auto& x, auto& y) {
           return x.first == y.first && x.second.ids == y.second.ids &&
                  same_floats(x.second.logprobs, y.second.logprobs);
         });
}

}  // namespace tandem::test
