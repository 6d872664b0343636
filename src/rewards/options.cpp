#include "rewards/options.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::rewards {
namespace {

// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) {
    row[j] = j;
  }
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
    }
  }
  return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view name, const std::vector<std::string>& candidates) {
  const auto closest =
      std::min_element(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
        return distance(name, a) < distance(name, b);
      });
  if (closest == candidates.end() || distance(name, *closest) > 1 + name.size() / 3) {
    return "";
  }
  return fmt::format("; did you mean {}?", *closest);
}

Options::Options(const RewardConfig& config) : reward_(config.name) {
  try {
    values_ = std::make_unique<nlohmann::json>(nlohmann::json::parse(config.options));
  } catch (const nlohmann::json::exception&) {
    refuse(fmt::format("options is not JSON: {}", config.options));
  }
  if (!values_->is_object()) {
    refuse(fmt::format("options is not an object: {}", config.options));
  }
}

Options::~Options() = default;

void Options::refuse(const std::string& what) const {
  fail<UserError>("reward {}: {}", reward_, what);
}

const nlohmann::json* Options::find(const std::string& key) {
  known_.push_back(key);
  const auto found = values_->find(key);
  return found == values_->end() ? nullptr : &*found;
}

bool Options::flag(const std::string& key, bool fallback) {
  const auto* value = find(key);
  if (value != nullptr && !value->is_boolean()) {
    refuse(fmt::format("option {} is {}, not true or false", key, value->dump()));
  }
  return value == nullptr ? fallback : value->get<bool>();
}

std::string Options::text(const std::string& key, const std::string& fallback) {
  const auto* value = find(key);
  if (value == nullptr) {
    return fallback;
  }
  // On a command line `pattern=42` reads as a number; as text it is what was written.
  return value->is_string() ? value->get<std::string>() : value->dump();
}

std::int64_t Options::integer(const std::string& key, std::int64_t fallback, std::int64_t lowest) {
  const auto* value = find(key);
  if (value == nullptr) {
    if (fallback < lowest) {
      refuse(fmt::format("option {} is required", key));
    }
    return fallback;
  }
  constexpr std::int64_t kHighest = 1ll << 53;
  if (!value->is_number_integer() || value->get<std::int64_t>() < lowest ||
      value->get<std::int64_t>() > kHighest) {
    refuse(fmt::format(
        "option {} is {}, not a whole number of at least {}", key, value->dump(), lowest));
  }
  return value->get<std::int64_t>();
}

std::string Options::choice(const std::string& key, const std::vector<std::string>& words) {
  const std::string value = text(key, words.front());
  if (std::find(words.begin(), words.end(), value) == words.end()) {
    refuse(fmt::format("option {} is '{}', not one of {}{}",
                       key,
                       value,
                       fmt::join(words, ", "),
                       did_you_mean(value, words)));
  }
  return value;
}

void Options::finish() const {
  for (const auto& [key, value] : values_->items()) {
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
      refuse(fmt::format("unknown option {}{}", key, did_you_mean(key, known_)));
    }
  }
}

}  // namespace tandem::rewards
