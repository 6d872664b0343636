// Reads a reward's `options:` strictly: unknown keys and wrong types are errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "rewards/reward.h"

namespace tandem::rewards {

/// " Did you mean x?" for the candidate closest to `name`, or nothing when none is close.
std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates);

/// The options of one built-in. Each getter names a key; `finish` then refuses all others.
class Options {
 public:
  explicit Options(const RewardConfig& config);
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options();

  [[nodiscard]] bool flag(const std::string& key, bool fallback);
  [[nodiscard]] std::string text(const std::string& key, const std::string& fallback);
  /// A whole number in [lowest, 2^53]; required when `fallback` is below `lowest`.
  [[nodiscard]] std::int64_t integer(const std::string& key,
                                     std::int64_t fallback,
                                     std::int64_t lowest);
  /// One of `words`; the first is the default.
  [[nodiscard]] std::string choice(const std::string& key, const std::vector<std::string>& words);

  /// Throws UserError for the first key that no getter asked for.
  void finish() const;

  /// Throws UserError: "reward NAME: " and `what`.
  [[noreturn]] void refuse(const std::string& what) const;

 private:
  const nlohmann::json* find(const std::string& key);

  std::string reward_;
  std::unique_ptr<nlohmann::json> values_;
  std::vector<std::string> known_;
};

}  // namespace tandem::rewards
