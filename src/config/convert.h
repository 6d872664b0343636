// One value of the file becomes one value of a struct, or an error that says what was expected.
#pragma once

#include <string>

#include "config/document.h"
#include "config/slots.h"

namespace tandem::config {

/// Where a value stands and what it is called, for errors.
struct ValueName {
  std::string place;  // "recipe.yaml:14"
  std::string path;   // "rollout.top_p"
};

/// What stands there, in words: "a list", "'abc'", "the text \"5\"", "nothing".
std::string describe(const Node& node);

/// The value of `node` as `type`, within the range and the words that `info` allows. Throws
/// UserError otherwise; NaN and infinities are refused.
ScalarValue convert_scalar(const FieldInfo& info,
                           const Node& node,
                           ScalarType type,
                           const ValueName& name);

/// "at least 1", "in [0, 1]", or an empty string where there is no bound.
std::string range_text(const FieldInfo& info);

}  // namespace tandem::config
