// The C side of TANDEM_REWARD: turns a C++ function into the structs of reward.h.
//
// Included by reward.hpp. Everything is hidden but the entry point, so that two reward libraries in
// one process do not share their lists.
#pragma once

#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "reward.hpp"

#define TANDEM_REWARD_HIDDEN __attribute__((visibility("hidden")))

namespace tandem {
inline namespace reward_abi_1 {
namespace detail {

// Flags given after a reward's name, as one number.
template <class... Flags>
constexpr std::uint32_t either(Flags... flags) {
  return (flags | ...);
}

TANDEM_REWARD_HIDDEN inline std::vector<const tandem_reward_function*>& functions() {
  static std::vector<const tandem_reward_function*> all;
  return all;
}

TANDEM_REWARD_HIDDEN inline const tandem_reward_library* library() {
  static tandem_reward_library all;
  all = {TANDEM_REWARD_ABI, functions().size(), functions().data()};
  return &all;
}

class TANDEM_REWARD_HIDDEN Registration {
 public:
  explicit Registration(const tandem_reward_function* function) { functions().push_back(function); }
};

inline tandem_text text_of(const std::string& text) {
  return {text.data(), text.size()};
}

// The results of one call; its address is the `owner` of the C struct.
class TANDEM_REWARD_HIDDEN Results {
 public:
  explicit Results(std::size_t num_samples) : logs(num_samples) {}

  void add(const Outcome& outcome) {
    tandem_reward_result result{};
    result.status = outcome.value() ? TANDEM_REWARD_SCORED : TANDEM_REWARD_NOT_APPLICABLE;
    result.value = outcome.value().value_or(0.0);
    results.push_back(result);
  }

  void add_failure(const char* why) {
    texts.emplace_back(why);
    tandem_reward_result result{};
    result.status = TANDEM_REWARD_FAILED;
    result.error = text_of(texts.back());
    results.push_back(result);
  }

  // Points the C structs at the logs; nothing may be added afterwards.
  void publish(tandem_reward_results& out) {
    extras.resize(logs.size());
    metrics.resize(logs.size());
    for (std::size_t i = 0; i < std::min(results.size(), logs.size()); ++i) {
      for (const auto& [name, value] : logs[i].extras) {
        extras[i].push_back({text_of(name), text_of(value)});
      }
      for (const auto& [name, value] : logs[i].metrics) {
        metrics[i].push_back({text_of(name), value});
      }
      results[i].extras = extras[i].data();
      results[i].num_extras = extras[i].size();
      results[i].metrics = metrics[i].data();
      results[i].num_metrics = metrics[i].size();
    }
    out.results = results.data();
    out.num_results = results.size();
  }

  std::vector<Log> logs;  // one a sample
  std::string error;      // of the whole batch

 private:
  std::vector<tandem_reward_result> results;
  std::deque<std::string> texts;
  std::vector<std::vector<tandem_reward_extra>> extras;
  std::vector<std::vector<tandem_reward_metric>> metrics;
};

inline int init(tandem_text options, void** state, tandem_text*) {
  *state = new std::string(view(options));
  return 0;
}

inline void destroy(void* state) {
  delete static_cast<std::string*>(state);
}

inline void free_results(void*, tandem_reward_results* results) {
  delete static_cast<Results*>(results->owner);
}

// Runs `fill(samples, results)`; what it throws becomes the error of the batch.
template <class Fill>
int run(void* state, const tandem_reward_batch& batch, tandem_reward_results& out, Fill fill) {
  const std::string& options = *static_cast<const std::string*>(state);
  auto results = std::make_unique<Results>(batch.num_samples);
  int status = 0;
  try {
    Samples samples;
    for (std::size_t i = 0; i < batch.num_samples; ++i) {
      samples.emplace_back(batch.samples[i], batch, options, results->logs[i]);
    }
    fill(samples, *results);
  } catch (const std::exception& error) {
    results->error = error.what();
    status = 1;
  } catch (...) {
    results->error = "an exception that is not a std::exception";
    status = 1;
  }
  results->publish(out);
  out.error = text_of(results->error);
  out.owner = results.release();
  return status;
}

using ScoreEach = Outcome (*)(const Sample&);
using ScoreBatch = std::vector<Outcome> (*)(const Samples&);

template <ScoreEach body>
struct TANDEM_REWARD_HIDDEN Each {
  static int score(void* state, const tandem_reward_batch* batch, tandem_reward_results* out) {
    return run(state, *batch, *out, [](const Samples& samples, Results& results) {
      for (const Sample& sample : samples) {
        try {
          results.add(body(sample));
        } catch (const std::exception& error) {
          results.add_failure(error.what());
        }
      }
    });
  }

  static const tandem_reward_function* describe(const char* name, std::uint32_t flags) {
    static const tandem_reward_function function = {
        name, flags, &init, &score, &free_results, &destroy};
    return &function;
  }
};

template <ScoreBatch body>
struct TANDEM_REWARD_HIDDEN Batch {
  static int score(void* state, const tandem_reward_batch* batch, tandem_reward_results* out) {
    return run(state, *batch, *out, [](const Samples& samples, Results& results) {
      for (const Outcome& outcome : body(samples)) {
        results.add(outcome);
      }
    });
  }

  static const tandem_reward_function* describe(const char* name, std::uint32_t flags) {
    static const tandem_reward_function function = {
        name, flags | TANDEM_REWARD_BATCHED, &init, &score, &free_results, &destroy};
    return &function;
  }
};

}  // namespace detail
}  // namespace reward_abi_1
}  // namespace tandem

extern "C" __attribute__((used, visibility("default"))) inline const tandem_reward_library*
tandem_rewards() {
  return ::tandem::detail::library();
}
