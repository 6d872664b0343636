#include "model/in_quotes.h"

#include <fmt/format.h>

namespace tandem::model {

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 120;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    if (c >= ' ' && c <= '~') {
      result += c;
    } else {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return result + (text.size() > kLongest ? "...'" : "'");
}

}  // namespace tandem::model
