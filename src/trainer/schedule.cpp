#include "trainer/schedule.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace tandem::trainer {
namespace {

// The order is that of the enum.
constexpr std::array<std::string_view, 3> kNames = {"constant", "linear", "cosine"};

}  // namespace

double learning_rate(const ScheduleConfig& config, double base, std::int64_t step) {
  TANDEM_CHECK(step >= 0, "schedule: step is {}", step);
  const auto at = static_cast<double>(step);
  const auto warmup = static_cast<double>(config.warmup_steps);
  if (step < config.warmup_steps) {
    return base * (at / warmup);
  }
  if (config.kind == ScheduleKind::kConstant) {
    return base;
  }
  const auto total = static_cast<double>(config.total_steps);
  const double length = std::max(1.0, total - warmup);
  if (config.kind == ScheduleKind::kLinear) {
    return base * std::max(0.0, (total - at) / length);
  }
  const double progress = (at - warmup) / length;
  const double angle = 2 * std::numbers::pi * config.cosine_cycles * progress;
  return base * std::max(0.0, 0.5 * (1 + std::cos(angle)));
}

void check_schedule(const ScheduleConfig& config) {
  if (config.warmup_steps < 0) {
    fail<UserError>("optimizer.warmup_steps: is {}; must be 0 or more", config.warmup_steps);
  }
  if (config.kind != ScheduleKind::kConstant && config.total_steps <= config.warmup_steps) {
    fail<UserError>(
        "optimizer.warmup_steps: {} leave nothing of {} optimizer steps for a {} schedule; lower "
        "it",
        config.warmup_steps,
        config.total_steps,
        name_of(config.kind));
  }
  if (!std::isfinite(config.cosine_cycles) || config.cosine_cycles <= 0) {
    fail<UserError>("optimizer.cosine_cycles: must be above 0");
  }
}

std::string_view name_of(ScheduleKind kind) {
  return kNames.at(static_cast<std::size_t>(kind));
}

ScheduleKind schedule_kind_from(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    fail<UserError>("optimizer.schedule: unknown value {}; known are constant, linear, cosine",
                    name);
  }
  return static_cast<ScheduleKind>(found - kNames.begin());
}

}  // namespace tandem::trainer
