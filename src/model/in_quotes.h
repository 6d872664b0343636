// Text out of files, made safe for a one-line message.
#pragma once

#include <string>
#include <string_view>

namespace tandem::model {

/// `text` in single quotes: bytes that are not printable ASCII as \xNN, cut after 120 characters.
std::string in_quotes(std::string_view text);

}  // namespace tandem::model
