#include "rewards/builtin/builtin.h"

#include <map>

#include "base/error.h"

namespace tandem::rewards {
namespace {

using Maker = BuiltinScore (*)(Options& options);

const std::map<std::string, Maker>& table() {
  static const std::map<std::string, Maker> kTable = {
      {"exact_match", make_exact_match},
      {"gsm8k", make_gsm8k},
      {"length", make_length},
      {"math", make_math},
      {"regex", make_regex},
  };
  return kTable;
}

class BuiltinFunction final : public RewardFunction {
 public:
  explicit BuiltinFunction(BuiltinScore score) : score_(std::move(score)) {}

  [[nodiscard]] bool batched() const override { return false; }

  std::vector<Score> score(std::span<const RewardSample> samples,
                           std::int64_t /*step*/,
                           std::int64_t /*deadline_ms*/) override {
    std::vector<Score> scores;
    for (const RewardSample& sample : samples) {
      scores.emplace_back().value = score_(sample);
    }
    return scores;
  }

 private:
  BuiltinScore score_;
};

}  // namespace

std::vector<std::string> builtin_kinds() {
  std::vector<std::string> kinds;
  for (const auto& [kind, maker] : table()) {
    kinds.push_back(kind);
  }
  return kinds;
}

std::unique_ptr<RewardFunction> make_builtin(const RewardConfig& config) {
  const auto found = table().find(config.kind);
  if (found == table().end()) {
    fail<UserError>(
        "unknown reward kind {}{}", config.kind, did_you_mean(config.kind, builtin_kinds()));
  }
  Options options(config);
  BuiltinScore score = found->second(options);
  options.finish();
  return std::make_unique<BuiltinFunction>(std::move(score));
}

}  // namespace tandem::rewards
