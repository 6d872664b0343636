#include "rewards/math/relation.h"

#include <algorithm>
#include <complex>

#include "rewards/math/answer_text.h"
#include "rewards/math/expression.h"

namespace tandem::rewards {
namespace {

std::optional<Complex> difference(const Relation& relation, std::uint64_t seed) {
  const auto left = evaluate(relation.sides[0], seed);
  const auto right = evaluate(relation.sides[1], seed);
  if (!left || !right) {
    return std::nullopt;
  }
  return left->value - right->value;
}

}  // namespace

std::string assigned_value(const Relation& relation) {
  const bool only_equal = relation.signs.find_first_not_of("=\x04") == std::string::npos;
  const std::size_t rounded = relation.signs.find(kApproximately, 1);
  const std::size_t last = rounded == std::string::npos ? relation.sides.size() - 1 : rounded;
  const auto constant = [](const std::string& side) {
    const auto value = evaluate(side, 0);
    return value && !value->has_variables;
  };
  const std::string& first = relation.sides.front();
  const std::string& value = relation.sides[last];
  return only_equal && (is_name(first) || (constant(first) && constant(value))) ? value : "";
}

std::optional<Sequence> as_interval(const Relation& relation) {
  Relation up = relation;
  if (up.signs.find_first_of(">\x02") != std::string::npos) {  // turn it round
    std::reverse(up.sides.begin(), up.sides.end());
    std::reverse(up.signs.begin(), up.signs.end());
    std::replace(up.signs.begin(), up.signs.end(), '>', '<');
    std::replace(up.signs.begin(), up.signs.end(), kGreaterEqual, kLessEqual);
  }
  if (up.signs.find_first_not_of("<\x01") != std::string::npos || up.signs.size() > 2) {
    return std::nullopt;
  }
  if (up.signs.size() == 1) {
    const bool name_first = is_name(up.sides[0]);
    if (!name_first && !is_name(up.sides[1])) {
      return std::nullopt;
    }
    up.sides.insert(name_first ? up.sides.begin() : up.sides.end(),
                    name_first ? "-\\infty" : "\\infty");
    up.signs.insert(name_first ? up.signs.begin() : up.signs.end(), '<');
  }
  return Sequence{
      up.signs[0] == '<' ? '(' : '[', up.signs[1] == '<' ? ')' : ']', {up.sides[0], up.sides[2]}};
}

bool are_proportional(const Relation& a, const Relation& b) {
  if (a.signs.size() != 1 || b.signs.size() != 1) {
    return false;
  }
  const auto kind = [](char sign) {
    return sign == '>' ? '<' : sign == kGreaterEqual ? kLessEqual : sign;
  };
  if (kind(a.signs[0]) != kind(b.signs[0])) {
    return false;
  }
  const bool ordered = kind(a.signs[0]) == '<' || kind(a.signs[0]) == kLessEqual;
  const bool turned = a.signs[0] != b.signs[0];
  Complex first;
  for (std::uint64_t seed = 0; seed < kNumSeeds; ++seed) {
    const auto x = difference(a, seed);
    const auto y = difference(b, seed);
    if (!x || !y || std::abs(*x) < 1e-9L || std::abs(*y) < 1e-9L) {
      return false;
    }
    const Complex ratio = *x / *y * (turned ? -1.0L : 1.0L);
    first = seed == 0 ? ratio : first;
    if (std::abs(ratio - first) > 1e-9L * std::abs(first) || (ordered && ratio.real() < 0)) {
      return false;
    }
  }
  return true;
}

}  // namespace tandem::rewards
