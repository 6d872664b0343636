#include "app/prefix_check.h"

#include <algorithm>

namespace tandem::app {
namespace {

std::optional<PrefixBreak> compare(const std::string& before,
                                   const std::string& after,
                                   std::size_t turn) {
  if (after.starts_with(before)) {
    return std::nullopt;
  }
  const std::size_t size = std::min(before.size(), after.size());
  const auto split = std::mismatch(
      before.begin(), before.begin() + static_cast<std::ptrdiff_t>(size), after.begin());
  const auto byte = static_cast<std::size_t>(split.first - before.begin());
  constexpr std::size_t kShown = 60;
  return PrefixBreak{turn, byte, before.substr(byte, kShown), after.substr(byte, kShown)};
}

}  // namespace

std::optional<PrefixBreak> find_prefix_break(const nlohmann::ordered_json& messages,
                                             const RenderFirst& render) {
  std::string done;  // the text up to and with the last turn of the model
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].value("role", "") != "assistant") {
      continue;
    }
    const std::string given = render(i, /*add_generation_prompt=*/true);
    if (auto broken = compare(done, given, i)) {
      return broken;
    }
    done = render(i + 1, /*add_generation_prompt=*/false);
    if (auto broken = compare(given, done, i)) {
      return broken;
    }
  }
  return std::nullopt;
}

}  // namespace tandem::app
