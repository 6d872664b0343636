// Whether a chat template leaves earlier turns as they are when a turn is added.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace tandem::app {

/// Renders the first messages of a conversation.
using RenderFirst =
    std::function<std::string(std::size_t num_messages, bool add_generation_prompt)>;

/// Where a template breaks the rule.
struct PrefixBreak {
  std::size_t turn = 0;  // index of the message whose addition changed what stood before
  std::size_t byte = 0;  // of the first difference
  std::string before;    // a stretch of text from there on
  std::string after;
};

/// Checks, for every message that the model writes, that the text it was sampled behind stays the
/// start of the text with it, and that this stays the start of the next turn's: what multi-turn
/// sampling needs, since ids are never made from text again.
std::optional<PrefixBreak> find_prefix_break(const nlohmann::ordered_json& messages,
                                             const RenderFirst& render);

}  // namespace tandem::app
