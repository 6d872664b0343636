#include "text/chat_template.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"
#include "text/jinja/interpreter.h"
#include "text/jinja/parser.h"
#include "text/jinja/print.h"

namespace tandem::text {
namespace {

std::tm local_time() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm time{};
  localtime_r(&now, &time);
  return time;
}

// Errors are one line, whatever the template or the data put into them.
std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

[[noreturn]] void throw_user_error(const jinja::TemplateError& error) {
  if (error.raised_by_template()) {
    throw UserError(one_line(error.what()));
  }
  fail<UserError>("chat template line {}: {}", error.line(), one_line(error.what()));
}

}  // namespace

struct ChatTemplate::Parsed {
  std::string source;
  jinja::Block block;
  std::map<std::string, std::string> special_tokens;
  Clock clock;
};

ChatTemplate::ChatTemplate(std::string source, const Tokenizer& tokenizer)
    : ChatTemplate(std::move(source), tokenizer.special_tokens()) {}

ChatTemplate::ChatTemplate(std::string source,
                           std::map<std::string, std::string> special_tokens,
                           Clock clock) {
  try {
    jinja::Block block = jinja::parse(source);
    parsed_ = std::make_shared<const Parsed>(Parsed{std::move(source),
                                                    std::move(block),
                                                    std::move(special_tokens),
                                                    clock ? std::move(clock) : Clock(local_time)});
  } catch (const jinja::TemplateError& error) {
    throw_user_error(error);
  }
}

std::string ChatTemplate::render(const nlohmann::ordered_json& context) const {
  return render_with_spans(context).text;
}

ChatTemplate::Rendered ChatTemplate::render_with_spans(
    const nlohmann::ordered_json& context) const {
  TANDEM_CHECK(context.is_object(), "the context of a chat template is {}", context.type_name());
  try {
    std::map<std::string, jinja::Value> variables;
    variables.emplace("tools", jinja::make_none());
    variables.emplace("documents", jinja::make_none());
    for (const auto& [name, text] : parsed_->special_tokens) {
      variables.insert_or_assign(name, jinja::make_text(text));
    }
    for (const auto& [name, value] : context.items()) {
      variables.insert_or_assign(name, jinja::from_json(value));
    }
    jinja::Interpreter interpreter(std::move(variables), parsed_->clock);
    Rendered rendered;
    rendered.text = interpreter.render(parsed_->block);
    rendered.generation_spans = interpreter.generation_spans();
    return rendered;
  } catch (const jinja::TemplateError& error) {
    throw_user_error(error);
  }
}

const std::string& ChatTemplate::source() const {
  return parsed_->source;
}

}  // namespace tandem::text
