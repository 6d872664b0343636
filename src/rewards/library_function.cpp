#include "rewards/library_function.h"

#include <dlfcn.h>
#include <tandem/reward.h>

#include "base/error.h"
#include "rewards/options.h"

namespace tandem::rewards {
namespace {

tandem_text text_of(const std::string& text) {
  return {text.data(), text.size()};
}

std::string string_of(tandem_text text) {
  return text.size == 0 ? std::string() : std::string(text.data, text.size);
}

struct CloseLibrary {
  void operator()(void* handle) const { ::dlclose(handle); }
};
using Library = std::unique_ptr<void, CloseLibrary>;

Library open_library(const RewardConfig& config) {
  // A path without a slash would be looked for in the system's folders.
  const bool has_slash = config.library.find('/') != std::string::npos;
  const std::string path = has_slash ? config.library : "./" + config.library;
  Library library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library) {
    const char* why = ::dlerror();
    fail<UserError>("reward {}: {}: cannot be loaded: {}",
                    config.name,
                    config.library,
                    why == nullptr ? "unknown reason" : why);
  }
  return library;
}

const tandem_reward_library& entry_of(void* library, const RewardConfig& config) {
  const auto entry = reinterpret_cast<tandem_rewards_entry>(::dlsym(library, TANDEM_REWARD_ENTRY));
  if (entry == nullptr) {
    fail<UserError>(
        "reward {}: {}: has no symbol {}; write it with TANDEM_REWARD of "
        "<tandem/reward.hpp>",
        config.name,
        config.library,
        TANDEM_REWARD_ENTRY);
  }
  const tandem_reward_library* list = entry();
  if (list == nullptr || list->abi != TANDEM_REWARD_ABI) {
    fail<UserError>(
        "reward {}: {}: has reward ABI {}, this program has {}; rebuild it with this "
        "version's include/tandem",
        config.name,
        config.library,
        list == nullptr ? 0 : list->abi,
        TANDEM_REWARD_ABI);
  }
  return *list;
}

const tandem_reward_function& choose_function(const tandem_reward_library& list,
                                              const RewardConfig& config) {
  std::vector<std::string> names;
  const std::string wanted = config.function.empty() ? config.name : config.function;
  for (std::size_t i = 0; i < list.num_functions; ++i) {
    names.emplace_back(list.functions[i]->name);
    if (names.back() == wanted) {
      return *list.functions[i];
    }
  }
  if (config.function.empty() && names.size() == 1) {
    return *list.functions[0];
  }
  fail<UserError>("reward {}: {}: has no reward {}{} (it has: {})",
                  config.name,
                  config.library,
                  wanted,
                  did_you_mean(wanted, names),
                  fmt::join(names, ", "));
}

// A batch in the structs of the ABI; points into the samples.
struct Batch {
  Batch(std::span<const RewardSample> all, std::int64_t step, std::int64_t deadline_ms)
      : messages(all.size()) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      const RewardSample& sample = all[i];
      for (const Message& message : sample.messages) {
        messages[i].push_back({text_of(message.role), text_of(message.content)});
      }
      samples.push_back({.id = text_of(sample.id),
                         .prompt = text_of(sample.prompt_text),
                         .completion = text_of(sample.completion),
                         .ground_truth = text_of(sample.ground_truth),
                         .columns = text_of(sample.columns_json),
                         .finish_reason = text_of(sample.finish_reason),
                         .messages = messages[i].data(),
                         .num_messages = messages[i].size(),
                         .completion_ids = sample.completion_ids.data(),
                         .num_completion_ids = sample.completion_ids.size()});
    }
    batch = {samples.data(), samples.size(), step, deadline_ms};
  }

  std::vector<std::vector<tandem_message>> messages;
  std::vector<tandem_reward_sample> samples;
  tandem_reward_batch batch{};
};

Score score_of(const tandem_reward_result& result) {
  Score score;
  if (result.status == TANDEM_REWARD_SCORED) {
    score.value = result.value;
  } else if (result.status != TANDEM_REWARD_NOT_APPLICABLE) {
    const std::string why = string_of(result.error);
    score.failure = why.empty() ? fmt::format("returned status {}", result.status) : why;
  }
  for (std::size_t i = 0; i < result.num_extras; ++i) {
    score.extra[string_of(result.extras[i].name)] = string_of(result.extras[i].value);
  }
  for (std::size_t i = 0; i < result.num_metrics; ++i) {
    score.metrics[string_of(result.metrics[i].name)] = result.metrics[i].value;
  }
  return score;
}

class LibraryFunction final : public RewardFunction {
 public:
  explicit LibraryFunction(const RewardConfig& config)
      : library_(open_library(config)),
        function_(choose_function(entry_of(library_.get(), config), config)) {
    tandem_text error{};
    if (function_.init(text_of(config.options), &state_, &error) != 0) {
      fail<UserError>(
          "reward {}: {}: refused its options: {}", config.name, config.library, string_of(error));
    }
  }
  LibraryFunction(const LibraryFunction&) = delete;
  LibraryFunction& operator=(const LibraryFunction&) = delete;
  ~LibraryFunction() override { function_.destroy(state_); }

  [[nodiscard]] bool batched() const override {
    return (function_.capabilities & TANDEM_REWARD_BATCHED) != 0;
  }
  [[nodiscard]] bool thread_safe() const {
    return (function_.capabilities & TANDEM_REWARD_NOT_THREAD_SAFE) == 0;
  }

  std::vector<Score> score(std::span<const RewardSample> samples,
                           std::int64_t step,
                           std::int64_t deadline_ms) override {
    const Batch batch(samples, step, deadline_ms);
    tandem_reward_results results{};
    const int status = function_.score(state_, &batch.batch, &results);
    std::vector<Score> scores;
    for (std::size_t i = 0; status == 0 && i < results.num_results; ++i) {
      scores.push_back(score_of(results.results[i]));
    }
    const std::string error = string_of(results.error);
    function_.free_results(state_, &results);
    TANDEM_CHECK(status == 0, "{}", error.empty() ? "refused the batch" : error);
    return scores;
  }

 private:
  Library library_;
  const tandem_reward_function& function_;
  void* state_ = nullptr;
};

}  // namespace

std::unique_ptr<RewardFunction> load_library_function(const RewardConfig& config) {
  return std::make_unique<LibraryFunction>(config);
}

bool is_thread_safe(const RewardFunction& function) {
  const auto* library = dynamic_cast<const LibraryFunction*>(&function);
  return library == nullptr || library->thread_safe();
}

}  // namespace tandem::rewards
