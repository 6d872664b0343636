// Rewards in C++17 with nothing but this folder: TANDEM_REWARD(name) { return a number; }
//
//   #include <tandem/reward.hpp>
//   TANDEM_REWARD(polite) {
//     return sample.completion().find("please") != std::string_view::npos;
//   }
//
//   g++ -shared -fPIC -I include polite.cpp -o libpolite.so
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "json_object.hpp"
#include "reward.h"

namespace tandem {
inline namespace reward_abi_1 {

struct NotApplicable {};
/// What a reward returns for a sample that it says nothing about.
inline constexpr NotApplicable not_applicable{};

/// Given after the name, `TANDEM_REWARD(name, tandem::not_thread_safe)`: never called from two
/// threads at a time.
inline constexpr std::uint32_t not_thread_safe = TANDEM_REWARD_NOT_THREAD_SAFE;

/// What a reward returns: made from any number, from `not_applicable`, or from an optional number.
class Outcome {
 public:
  template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
  Outcome(Number value) : value_(static_cast<double>(value)) {}
  Outcome(NotApplicable) {}
  Outcome(std::optional<double> value) : value_(value) {}

  [[nodiscard]] const std::optional<double>& value() const { return value_; }

 private:
  std::optional<double> value_;
};

/// A run of values that somebody else owns.
template <class T>
class View {
 public:
  View(const T* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  const T& operator[](std::size_t i) const { return data_[i]; }

 private:
  const T* data_;
  std::size_t size_;
};

inline std::string_view view(tandem_text text) {
  return text.size == 0 ? std::string_view() : std::string_view(text.data, text.size);
}

struct ChatMessage {
  std::string_view role, content;
};

namespace detail {
// What a reward logged about one sample.
struct Log {
  std::vector<std::pair<std::string, std::string>> extras;
  std::vector<std::pair<std::string, double>> metrics;
};
}  // namespace detail

/// One completion to score. Views live until the reward returns.
class Sample {
 public:
  Sample(const tandem_reward_sample& sample,
         const tandem_reward_batch& batch,
         const std::string& options,
         detail::Log& log)
      : sample_(&sample), batch_(&batch), options_(&options), log_(&log) {}

  [[nodiscard]] std::string_view id() const { return view(sample_->id); }
  [[nodiscard]] std::string_view prompt() const { return view(sample_->prompt); }
  [[nodiscard]] std::string_view completion() const { return view(sample_->completion); }
  [[nodiscard]] std::string_view ground_truth() const { return view(sample_->ground_truth); }
  /// "stop", "length", "stop_string", "abort" or "error".
  [[nodiscard]] std::string_view finish_reason() const { return view(sample_->finish_reason); }
  [[nodiscard]] View<std::int32_t> completion_ids() const {
    return {sample_->completion_ids, sample_->num_completion_ids};
  }
  /// The messages of the prompt; empty where the prompt was raw text.
  [[nodiscard]] std::vector<ChatMessage> messages() const {
    std::vector<ChatMessage> all;
    for (std::size_t i = 0; i < sample_->num_messages; ++i) {
      all.push_back({view(sample_->messages[i].role), view(sample_->messages[i].content)});
    }
    return all;
  }
  /// The data row: `columns().number("difficulty")`, `columns().string("answer")`.
  [[nodiscard]] JsonObject columns() const { return JsonObject(view(sample_->columns)); }
  /// The recipe's `options:` of this reward.
  [[nodiscard]] JsonObject options() const { return JsonObject(*options_); }
  [[nodiscard]] std::int64_t step() const { return batch_->step; }

  /// A text shown beside the sample in the completions.
  void log_extra(std::string name, std::string value) const {
    log_->extras.emplace_back(std::move(name), std::move(value));
  }
  /// A number averaged over the samples of the step that log it.
  void log_metric(std::string name, double value) const {
    log_->metrics.emplace_back(std::move(name), value);
  }

 private:
  const tandem_reward_sample* sample_;
  const tandem_reward_batch* batch_;
  const std::string* options_;
  detail::Log* log_;
};

using Samples = std::vector<Sample>;

}  // namespace reward_abi_1
}  // namespace tandem

#include "reward_adapter.hpp"

/// Defines a reward that scores `sample`, a `const tandem::Sample&`, and returns a number or
/// tandem::not_applicable, or throws. Flags may follow the name.
#define TANDEM_REWARD(...) TANDEM_REWARD_NAME_AND_FLAGS(__VA_ARGS__, 0u)
#define TANDEM_REWARD_NAME_AND_FLAGS(name, ...)                                \
  static ::tandem::Outcome tandem_body_##name(const ::tandem::Sample& sample); \
  static const ::tandem::detail::Registration tandem_registration_##name(      \
      ::tandem::detail::Each<tandem_body_##name>::describe(                    \
          #name, ::tandem::detail::either(__VA_ARGS__)));                      \
  static ::tandem::Outcome tandem_body_##name([[maybe_unused]] const ::tandem::Sample& sample)

/// Defines a reward that scores `samples`, a `const tandem::Samples&`, at once and returns a
/// std::vector<tandem::Outcome> of the same length. When it throws, the samples are scored singly.
#define TANDEM_REWARD_BATCH(...) TANDEM_REWARD_BATCH_NAME_AND_FLAGS(__VA_ARGS__, 0u)
#define TANDEM_REWARD_BATCH_NAME_AND_FLAGS(name, ...)                                         \
  static std::vector<::tandem::Outcome> tandem_body_##name(const ::tandem::Samples& samples); \
  static const ::tandem::detail::Registration tandem_registration_##name(                     \
      ::tandem::detail::Batch<tandem_body_##name>::describe(                                  \
          #name, ::tandem::detail::either(__VA_ARGS__)));                                     \
  static std::vector<::tandem::Outcome> tandem_body_##name(                                   \
      [[maybe_unused]] const ::tandem::Samples& samples)
