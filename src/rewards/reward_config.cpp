// Reading and checking one reward's settings.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "rewards/builtin/builtin.h"
#include "rewards/options.h"
#include "rewards/policy.h"
#include "rewards/reward.h"

namespace tandem::rewards {
namespace {

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() > end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// "key" when `text` starts with "key=" at `at`, else empty.
std::string key_at(const std::string& text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() &&
         (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_')) {
    ++end;
  }
  return end > at && end < text.size() && text[end] == '=' ? text.substr(at, end - at) : "";
}

// Cuts "a=1,b=x,y" into {"a=1", "b=x,y"}.
std::vector<std::string> split_settings(const std::string& text) {
  std::vector<std::string> parts;
  std::size_t start = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && !key_at(text, i + 1).empty())) {
      parts.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  return parts;
}

double number_of(const std::string& key, const std::string& text) {
  const auto number = finite_number(text);
  if (!number) {
    fail<UserError>("--reward: {} is '{}', not a number", key, text);
  }
  return *number;
}

// Sets a key of RewardConfig, or false where the key is an option of the function.
bool set_own(RewardConfig& config, const std::string& key, const std::string& value) {
  if (key == "name") {
    config.name = value;
  } else if (key == "weight") {
    config.weight = number_of(key, value);
  } else if (key == "timeout_ms") {
    config.timeout_ms = static_cast<std::int64_t>(number_of(key, value));
  } else if (key == "on_failure") {
    config.on_failure = value;
  } else if (key == "isolation") {
    config.isolation = value;
  } else {
    return false;
  }
  return true;
}

nlohmann::json value_of(const std::string& text) {
  auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? nlohmann::json(text) : value;
}

void read_settings(RewardConfig& config, const std::string& settings, const std::string& spec) {
  auto options = nlohmann::json::object();
  for (const std::string& part : split_settings(settings)) {
    const std::string key = key_at(part, 0);
    if (key.empty()) {
      fail<UserError>("--reward {}: '{}' is not key=value", spec, part);
    }
    const std::string value = part.substr(key.size() + 1);
    if (!set_own(config, key, value)) {
      options[key] = value_of(value);
    }
  }
  config.options = options.dump();
}

// Of several ways to say which function is meant, exactly one must be used.
void check_kind(RewardConfig& config) {
  if (config.kind.empty()) {
    config.kind = !config.library.empty() ? "library" : !config.file.empty() ? "python" : "";
  }
  if (config.kind.empty()) {
    fail<UserError>("reward {}: needs one of kind, library, file", config.name);
  }
  if ((config.kind == "library") != !config.library.empty()) {
    fail<UserError>("reward {}: library and kind {} do not go together", config.name, config.kind);
  }
  if ((config.kind == "python") != !config.file.empty()) {
    fail<UserError>("reward {}: kind python needs file, and no other kind takes it; kind is {}",
                    config.name,
                    config.kind);
  }
  if (config.kind == "library" || config.kind == "python") {
    return;
  }
  if (!config.function.empty()) {
    fail<UserError>("reward {}: kind {} takes no function", config.name, config.kind);
  }
  const auto kinds = builtin_kinds();
  if (std::find(kinds.begin(), kinds.end(), config.kind) == kinds.end()) {
    fail<UserError>("unknown reward kind {}{} (known: {}, python)",
                    config.kind,
                    did_you_mean(config.kind, kinds),
                    fmt::join(kinds, ", "));
  }
}

void check_file(const RewardConfig& config, const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    fail<UserError>("reward {}: {}: {}",
                    config.name,
                    path,
                    std::filesystem::exists(path, ignored) ? "is not a file" : "no such file");
  }
}

std::string default_name(const RewardConfig& config) {
  if (!config.function.empty()) {
    return config.function;
  }
  if (!config.library.empty()) {
    std::string stem = std::filesystem::path(config.library).stem().string();
    return stem.rfind("lib", 0) == 0 ? stem.substr(3) : stem;
  }
  return config.kind;
}

}  // namespace

RewardConfig parse_reward_spec(const std::string& spec) {
  RewardConfig config;
  const std::size_t colon = spec.find(':');
  const std::string head = spec.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : spec.substr(colon + 1);
  if (head.empty()) {
    fail<UserError>("--reward '{}': give kind[:key=value,...], FILE.so[:name] or FILE.py:function",
                    spec);
  }
  const bool library = ends_with(head, ".so");
  const bool python = ends_with(head, ".py");
  (library ? config.library : python ? config.file : config.kind) = head;
  std::string settings = rest;
  if ((library || python) && key_at(rest, 0).empty()) {
    config.function = rest.substr(0, rest.find(','));
    settings = rest.find(',') == std::string::npos ? "" : rest.substr(rest.find(',') + 1);
  }
  if (!settings.empty()) {
    read_settings(config, settings, spec);
  }
  check_reward_config(config);
  return config;
}

void check_reward_config(RewardConfig& config) {
  if (config.name.empty()) {
    config.name = default_name(config);
  }
  check_kind(config);
  if (config.kind == "library") {
    check_file(config, config.library);
  }
  if (config.kind == "python") {
    check_file(config, config.file);
    if (config.function.empty()) {
      config.function = config.name;
    }
    if (config.isolation == "thread") {
      fail<UserError>("reward {}: Python runs in a process only; leave out isolation", config.name);
    }
  }
  if (config.isolation != "process" && config.isolation != "thread") {
    fail<UserError>(
        "reward {}: isolation is '{}', not process or thread", config.name, config.isolation);
  }
  if (config.timeout_ms < 1) {
    fail<UserError>("reward {}: timeout_ms is {}, less than 1", config.name, config.timeout_ms);
  }
  if (!std::isfinite(config.weight)) {
    fail<UserError>("reward {}: weight is {}", config.name, config.weight);
  }
  (void)parse_policy(config);
}

}  // namespace tandem::rewards
