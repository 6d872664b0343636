// Prompts to the ids that the model is given: chat template, tokenizer.
#pragma once

#include <string>
#include <vector>

#include "app/session.h"
#include "protocol/trajectory.h"

namespace tandem::app {

/// Renders messages by the model's chat template with a generation prompt. Throws UserError, with
/// the template's own words, when it refuses them.
std::string render_chat(const Session& session, const std::vector<Message>& messages);

/// Ids of a rendered chat: special tokens in it count, none are added.
std::vector<TokenId> encode_rendered(const Session& session, const std::string& text);

/// Ids of raw text, with the tokenizer's own special tokens.
std::vector<TokenId> encode_raw(const Session& session, const std::string& text);

/// Fills in `text` and `ids` of a prompt that has messages or raw text. Messages without a chat
/// template are an error that names the remedy.
void render_prompt(const Session& session, Prompt& prompt);

}  // namespace tandem::app
