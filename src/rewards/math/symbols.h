// Names in expressions: functions, Greek letters, and values for variables.
#pragma once

#include <span>
#include <string_view>

#include "rewards/math/expression.h"

namespace tandem::rewards {

struct NamedFunction {
  std::string_view name;
  Complex (*apply)(const Complex& x);
};

/// The known functions, in an order where no name hides a longer one.
std::span<const NamedFunction> named_functions();

/// The function whose name `text` starts with, or null.
const NamedFunction* function_at(std::string_view text);

bool is_greek_letter(std::string_view name);

/// A number in (0.4, 2.4) that depends on a variable's name and a seed.
Complex made_up_value(std::string_view name, std::uint64_t seed);

}  // namespace tandem::rewards
