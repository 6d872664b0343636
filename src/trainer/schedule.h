// The learning rate of each optimizer step.
#pragma once

#include <cstdint>
#include <string_view>

namespace tandem::trainer {

enum class ScheduleKind { kConstant, kLinear, kCosine };

struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  std::int64_t warmup_steps = 0;  // at least 0
  std::int64_t total_steps = 0;   // above warmup_steps for linear and cosine; not read by constant
  double cosine_cycles = 0.5;     // 0.5 falls once from the full rate to 0
};

/// The learning rate of optimizer step `step`, from 0. For any kind and step >= 0:
///
///   step < warmup_steps:  base * step / warmup_steps   (the first step has rate 0)
///   constant:             base
///   linear:               base * (total - step) / (total - warmup), at least 0
///   cosine:               base * (1 + cos(2 pi cycles progress)) / 2, where
///                         progress = (step - warmup) / (total - warmup)
///
/// Past the end linear stays at 0 and cosine goes on along its curve: the rules of the schedulers
/// of the same names in Hugging Face transformers.
double learning_rate(const ScheduleConfig& config, double base, std::int64_t step);

/// Throws UserError, naming the recipe's key, for values out of range.
void check_schedule(const ScheduleConfig& config);

/// "constant", "linear", "cosine"; the other way throws UserError that lists them.
std::string_view name_of(ScheduleKind kind);
ScheduleKind schedule_kind_from(std::string_view name);

}  // namespace tandem::trainer
