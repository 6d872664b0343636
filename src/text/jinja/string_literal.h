// Escapes in string literals.
#pragma once

#include <string>
#include <string_view>

namespace tandem::text::jinja {

/// The text of a literal without its quotes, by Python's rules: unknown escapes stay as they are.
/// Throws TemplateError with the line for an incomplete \x, \u or \U.
std::string resolve_escapes(std::string_view literal, int line);

}  // namespace tandem::text::jinja
