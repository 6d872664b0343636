// Builds the tree of a Document out of yaml-cpp's events; nothing else knows yaml-cpp.
#pragma once

#include <string>
#include <string_view>

#include "config/document.h"

namespace tandem::config {

/// The tree of the one YAML document in `text`; an empty one is a null node. `place` starts the
/// errors: a file's name, to which ":LINE" is added, or the text of an override.
Node parse_yaml(std::string_view text, const std::string& place, bool with_lines);

}  // namespace tandem::config
