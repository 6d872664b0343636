// Keys that the chosen combination does not read: setting one is an error, never silence.
#include <array>
#include <string_view>

#include <fmt/format.h>

#include "app/recipe_rules.h"
#include "config/config.h"

namespace tandem::app {
namespace {

struct UnreadKey {
  std::string_view path;  // of a key, or of a section with all its keys; "*" is any index
  bool (*unread)(const Recipe& recipe);
  std::string_view reason;
};

bool has_no_kl(const Recipe& r) {
  return r.algorithm.kl.coefficient == 0.0;
}
bool has_no_validation(const Recipe& r) {
  return r.data.validation.empty();
}
bool has_no_checkpoints(const Recipe& r) {
  return r.trainer.checkpoint.every == 0;
}
bool has_raw_prompts(const Recipe& r) {
  return r.data.chat_template == "none";
}

constexpr std::string_view kNoValidation = "has no effect without data.validation";
constexpr std::string_view kNoCheckpoints =
    "has no effect while trainer.checkpoint.every is 0, which keeps no checkpoints";
constexpr std::string_view kRawPrompts =
    "has no effect with data.template none: raw prompts have no turns";

constexpr std::array<UnreadKey, 18> kUnreadKeys = {{
    {"algorithm.kl.estimator", has_no_kl, "has no effect while algorithm.kl.coefficient is 0"},
    {"algorithm.kl.in", has_no_kl, "has no effect while algorithm.kl.coefficient is 0"},
    {"algorithm.advantage_epsilon",
     [](const Recipe& r) { return r.algorithm.name == "dr_grpo" || r.algorithm.name == "rloo"; },
     "has no effect: this algorithm does not divide by the standard deviation"},
    {"algorithm.clip_dual",
     [](const Recipe& r) { return r.algorithm.name == "cispo"; },
     "has no effect under cispo, whose weights are capped already"},
    {"validation", has_no_validation, kNoValidation},
    {"trainer.validate_every", has_no_validation, kNoValidation},
    {"trainer.validate_before", has_no_validation, kNoValidation},
    {"trainer.checkpoint.best", has_no_validation, kNoValidation},
    {"trainer.checkpoint.keep", has_no_checkpoints, kNoCheckpoints},
    {"trainer.checkpoint.export", has_no_checkpoints, kNoCheckpoints},
    {"trainer.checkpoint.best", has_no_checkpoints, kNoCheckpoints},
    {"data.system", has_raw_prompts, kRawPrompts},
    {"data.examples", has_raw_prompts, kRawPrompts},
    {"data.train.*.weight",
     [](const Recipe& r) { return r.data.train.size() < 2; },
     "has no effect with one file"},
    {"data.last_batch",
     [](const Recipe& r) { return r.data.train.size() > 1; },
     "has no effect with several files, each of which goes on with its next epoch by itself"},
    {"sft.data.*.weight",
     [](const Recipe& r) { return r.sft.data.size() < 2; },
     "has no effect with one file"},
    {"sft", [](const Recipe& r) { return r.sft.data.empty(); }, "has no effect without sft.data"},
    {"data.columns.completion",
     [](const Recipe& r) { return r.sft.data.empty(); },
     "has no effect without sft.data"},
}};

// Whether `path` is `pattern` or lies inside it.
bool covers(std::string_view pattern, std::string_view path) {
  const auto wanted = config::split_path(pattern);
  const auto given = config::split_path(path);
  if (given.size() < wanted.size()) {
    return false;
  }
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] != "*" && wanted[i] != given[i]) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::optional<RecipeProblem> find_unread_key(const Recipe& recipe) {
  for (const std::string& path : config::changed_paths(recipe)) {
    for (const UnreadKey& key : kUnreadKeys) {
      if (key.unread(recipe) && covers(key.path, path)) {
        return RecipeProblem{path, std::string(key.reason)};
      }
    }
  }
  return {};
}

}  // namespace tandem::app
