#include "rewards/math/values.h"

#include <cmath>

#include "rewards/builtin/text.h"
#include "rewards/math/expression.h"

namespace tandem::rewards {
namespace {

constexpr long double kRounding = 1e-13L;  // relative, of values computed in extended precision

bool take_percent(std::string_view& text) {
  const bool percent = !text.empty() && text.back() == '%';
  text = trim(text.substr(0, text.size() - (percent ? 1 : 0)));
  return percent;
}

struct Scaled {
  std::string_view text;
  long double scale = 1.0L;
};

bool same_numbers(const Scaled& a, const Scaled& b, int precision) {
  const bool decimal = a.text.find('.') != a.text.npos || b.text.find('.') != b.text.npos;
  for (std::uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    const auto x = evaluate(a.text, seed);
    const auto y = evaluate(b.text, seed);
    if (!x || !y) {
      return false;
    }
    const Complex value = x->value * a.scale;
    const long double allowed =
        kRounding * std::abs(value) + (decimal ? 0.51L * std::pow(10.0L, -precision) : 0.0L);
    if (std::abs(value - y->value * b.scale) > allowed) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool same_values(std::string_view a, std::string_view b, int precision) {
  const bool percent_a = take_percent(a);
  const bool percent_b = take_percent(b);
  if (same_numbers({a}, {b}, precision)) {
    return true;
  }
  return percent_a != percent_b &&
         same_numbers({a, percent_a ? 0.01L : 1.0L}, {b, percent_b ? 0.01L : 1.0L}, precision);
}

}  // namespace tandem::rewards
