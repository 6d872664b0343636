// Chat templates: a conversation to the text that a model was trained on.
#pragma once

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "text/tokenizer.h"

namespace tandem::text {

/// A Jinja template with the environment that transformers gives it: trim_blocks, lstrip_blocks,
/// break and continue, {% generation %}, tojson, raise_exception, strftime_now, and a sandbox in
/// which a template changes nothing but namespaces. Immutable and cheap to copy; any number of
/// threads may render with one.
class ChatTemplate {
 public:
  /// What strftime_now prints; the local time unless a test injects another.
  using Clock = std::function<std::tm()>;

  /// The tokenizer gives bos_token, eos_token, ... to the template.
  ChatTemplate(std::string source, const Tokenizer& tokenizer);

  /// Throws UserError "chat template line N: ..." for a source that does not parse.
  explicit ChatTemplate(std::string source,
                        std::map<std::string, std::string> special_tokens = {},
                        Clock clock = {});

  struct Rendered {
    std::string text;
    /// Byte ranges of `text` that {% generation %} blocks made, in order.
    std::vector<std::pair<std::int64_t, std::int64_t>> generation_spans;
  };

  /// Renders with the members of the object `context` as variables: messages, tools, documents,
  /// add_generation_prompt and whatever else the template knows. `tools` and `documents` are none
  /// where they are absent. Throws UserError with the text of the template's own raise_exception,
  /// or "chat template line N: ...".
  [[nodiscard]] std::string render(const nlohmann::ordered_json& context) const;
  [[nodiscard]] Rendered render_with_spans(const nlohmann::ordered_json& context) const;

  [[nodiscard]] const std::string& source() const;

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace tandem::text
