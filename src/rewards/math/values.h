// Whether two expressions have the same value.
#pragma once

#include <string_view>

namespace tandem::rewards {

/// Agreement at several seeds of the variables. Where one side is written with a decimal point, to
/// `precision` decimals; else to the last digits of extended precision. A percentage equals its
/// number and its hundredth.
bool same_values(std::string_view a, std::string_view b, int precision);

}  // namespace tandem::rewards
