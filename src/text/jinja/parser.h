// Template source to syntax tree.
#pragma once

#include <string_view>

#include "text/jinja/ast.h"

namespace tandem::text::jinja {

/// Throws TemplateError with the line.
Block parse(std::string_view source);

}  // namespace tandem::text::jinja
