// Reward functions of a recipe: configured, isolated from the trainer, scored batch-wise.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::rewards {

/// One entry of a recipe's `rewards:`.
struct RewardConfig {
  std::string name;      // metric and column name; empty: taken from kind, function or library
  std::string kind;      // a built-in, "python" or "library"; empty: told by library or file
  std::string library;   // path of a shared object with the ABI of include/tandem/reward.h
  std::string file;      // path of a Python file
  std::string function;  // in the library or file; empty: `name`, or the only one of a library
  std::string options = "{}";  // JSON object, handed to the function
  double weight = 1.0;
  std::int64_t timeout_ms = 10000;    // for one call; at least 1
  std::string on_failure = "none";    // "error", "none", "drop_group" or a number
  std::string isolation = "process";  // "process" or "thread"
};

/// One completion to score.
struct RewardSample {
  std::string id;  // names the sample in messages
  std::string prompt_text;
  std::vector<Message> messages;  // of the prompt; empty where it was raw text
  std::string completion;         // any bytes
  std::vector<TokenId> completion_ids;
  std::string ground_truth;         // empty where there is none
  std::string columns_json = "{}";  // the whole data row, a JSON object
  std::string finish_reason = "stop";
};

/// What one function said about one sample.
struct Score {
  std::optional<double>
      value;            // finite; none: does not apply, or failed without a number to fill in
  std::string failure;  // why it failed; empty where it did not
  std::map<std::string, std::string> extra;  // texts that the function logged
  std::map<std::string, double> metrics;     // numbers that the function logged
};

/// Counts of one function since the start.
struct RewardStats {
  std::int64_t scored = 0;    // samples seen
  std::int64_t failures = 0;  // samples on which the function failed
  std::int64_t restarts = 0;  // workers started after the first
};

/// All reward functions of a recipe.
///
/// Not thread safe. Build it before LibTorch or a thread pool starts threads: it forks the process
/// from which the workers come. Workers end with the set, and with this process however that ends.
class RewardSet {
 public:
  /// Checks every config, starts the workers and waits until each has loaded its function.
  ///
  /// Throws UserError naming the file for a missing or foreign shared object, another ABI version,
  /// a missing symbol, a Python file that does not load; and for unknown kinds and options.
  explicit RewardSet(std::vector<RewardConfig> configs);
  RewardSet(const RewardSet&) = delete;
  RewardSet& operator=(const RewardSet&) = delete;
  ~RewardSet();

  /// One vector for each function, one Score for each sample, in order.
  ///
  /// A crash, a missed deadline, an exception, a number that is not finite or a wrong count is a
  /// failure of that sample alone. A numeric `on_failure` is filled in; with "error" the first
  /// failure throws Error naming function and sample, after all functions have ended. With
  /// "drop_group" the caller drops the groups of samples that have a `failure`.
  std::vector<std::vector<Score>> score(std::span<const RewardSample> samples, std::int64_t step);

  [[nodiscard]] const std::vector<RewardConfig>& configs() const;
  [[nodiscard]] RewardStats stats(std::size_t function) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The `--reward SPEC` of the command line: `kind[:key=value,...]`, `FILE.so[:name]` or
/// `FILE.py:function`. Keys are options of the function, or name, weight, timeout_ms, on_failure,
/// isolation. A comma starts a new option only where `key=` follows. Throws UserError.
RewardConfig parse_reward_spec(const std::string& spec);

/// Fills in name and kind, and throws UserError for whatever is wrong in `config` by itself.
void check_reward_config(RewardConfig& config);

/// The kinds that need neither library nor file, sorted.
std::vector<std::string> builtin_kinds();

}  // namespace tandem::rewards
