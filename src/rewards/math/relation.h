// Equations and inequalities: what they assign, which interval they are, when two are the same.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "rewards/math/answer_parts.h"

namespace tandem::rewards {

/// v of x = ... = v, where x is a name or all is constant; empty for other relations. What follows
/// an approximately-equal sign does not count, unless it is the only sign.
std::string assigned_value(const Relation& relation);

/// a < x <= b as (a, b], x >= a as [a, \infty).
std::optional<Sequence> as_interval(const Relation& relation);

/// Whether the differences of sides of two equations or inequalities have a constant ratio; of
/// inequalities a positive one.
bool are_proportional(const Relation& a, const Relation& b);

}  // namespace tandem::rewards
