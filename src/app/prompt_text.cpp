#include "app/prompt_text.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::app {

std::string render_chat(const Session& session, const std::vector<Message>& messages) {
  if (!session.chat_template) {
    fail<UserError>("{}: has no chat template; give raw text (--raw, or data.template: none)",
                    session.name);
  }
  nlohmann::ordered_json context;
  context["messages"] = nlohmann::ordered_json::array();
  for (const auto& message : messages) {
    context["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  context["add_generation_prompt"] = true;
  return session.chat_template->render(context);
}

std::vector<TokenId> encode_rendered(const Session& session, const std::string& text) {
  return session.need_tokenizer().encode(text, {.add_special_tokens = false});
}

std::vector<TokenId> encode_raw(const Session& session, const std::string& text) {
  return session.need_tokenizer().encode(text, {});
}

void render_prompt(const Session& session, Prompt& prompt) {
  if (prompt.messages.empty()) {
    prompt.ids = encode_raw(session, prompt.text);
    return;
  }
  prompt.text = render_chat(session, prompt.messages);
  prompt.ids = encode_rendered(session, prompt.text);
}

}  // namespace tandem::app
