// Evaluates a LaTeX or plain expression at made-up values of its variables.
#pragma once

#include <complex>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tandem::rewards {

using Complex = std::complex<long double>;

/// Seeds from 0 at which two expressions must agree to be taken for equal.
inline constexpr std::uint64_t kNumSeeds = 4;

struct EvaluatedExpression {
  Complex value;
  bool has_variables = false;
};

/// The value of all of `text`, with each variable at a number that depends on its name and `seed`;
/// nothing where it cannot be read or has no finite value.
///
/// Reads numbers, mixed numbers (2\frac{1}{3}), + - * / ^ !, \cdot, \times, \div, products without
/// a sign, \frac, \sqrt[n], \binom, |x|, the usual functions with or without parentheses, pi, e, i,
/// Greek and Latin letters with subscripts; infinity is a very large number. Two expressions that
/// agree at several seeds are taken for equal (Schwartz-Zippel).
std::optional<EvaluatedExpression> evaluate(std::string_view text, std::uint64_t seed);

}  // namespace tandem::rewards
