// tandem render: conversations to the text or ids that the model's chat template makes of them.
#include <memory>

#include <nlohmann/json.hpp>

#include "app/commands.h"
#include "app/jsonl.h"
#include "app/open_tokenizer.h"
#include "app/prefix_check.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "text/chat_template.h"

namespace tandem::app {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string model;
  std::string messages;
  std::string tools;
  std::string json;
  bool add_generation_prompt = false;
  bool ids = false;
  bool check = false;
};

Json read_tools(const std::string& file) {
  if (file.empty()) {
    return {};
  }
  Json tools = Json::parse(read_file(file), nullptr, /*allow_exceptions=*/false);
  if (!tools.is_array()) {
    fail<UserError>("{}: is no JSON list of tools; write [{{\"type\": \"function\", ...}}]", file);
  }
  return tools;
}

class Renderer {
 public:
  explicit Renderer(const Options& options)
      : options_(options),
        tokenizer_(open_tokenizer(options.model)),
        tools_(read_tools(options.tools)) {
    const auto source = tokenizer_.chat_template();
    if (!source) {
      fail<UserError>("{}: has no chat template", options.model);
    }
    template_.emplace(*source, tokenizer_);
  }

  /// The line for one row. A row that the template refuses has an error instead of a text.
  std::string line_of(const Json& row, const std::string& place) {
    const auto messages = row.find("messages");
    if (messages == row.end() || !messages->is_array()) {
      fail<UserError>("{}: wants {{\"messages\": [{{\"role\", \"content\"}}, ...]}}", place);
    }
    try {
      return options_.check ? check(row, *messages) : render(row, *messages);
    } catch (const UserError& e) {
      all_ok_ = false;
      return JsonObject().add("error", std::string_view(e.what())).str();
    } catch (const nlohmann::json::exception& e) {
      fail<UserError>("{}: a value has the wrong type: {}", place, e.what());
    }
  }

  [[nodiscard]] bool all_ok() const { return all_ok_; }

 private:
  [[nodiscard]] std::string text_of(const Json& row, Json messages, bool generation_prompt) const {
    Json context = row.value("chat_template_kwargs", Json::object());
    context["messages"] = std::move(messages);
    context["add_generation_prompt"] = generation_prompt;
    const auto own = row.find("tools");
    if (own != row.end() && !own->is_null()) {
      context["tools"] = *own;
    } else if (!tools_.is_null()) {
      context["tools"] = tools_;
    }
    return template_->render(context);
  }

  [[nodiscard]] std::string render(const Json& row, const Json& messages) const {
    const bool prompt = row.value("add_generation_prompt", options_.add_generation_prompt);
    const std::string text = text_of(row, messages, prompt);
    if (!options_.ids) {
      return JsonObject().add("text", std::string_view(text)).str();
    }
    // The template spells the special tokens out; none are added.
    const auto ids = tokenizer_.encode(text, {.add_special_tokens = false});
    return JsonObject().add("ids", ids).str();
  }

  std::string check(const Json& row, const Json& messages) {
    const auto render_first = [&](std::size_t num_messages, bool generation_prompt) {
      const auto end = messages.begin() + static_cast<std::ptrdiff_t>(num_messages);
      return text_of(row, Json(Json::array_t(messages.begin(), end)), generation_prompt);
    };
    const auto broken = find_prefix_break(messages, render_first);
    if (!broken) {
      return JsonObject().add("prefix_preserving", true).str();
    }
    all_ok_ = false;
    return JsonObject()
        .add("prefix_preserving", false)
        .add("turn", static_cast<std::int64_t>(broken->turn))
        .add("byte", static_cast<std::int64_t>(broken->byte))
        .add("before", std::string_view(broken->before))
        .add("after", std::string_view(broken->after))
        .str();
  }

  const Options& options_;
  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> template_;
  Json tools_;  // null where none are given
  bool all_ok_ = true;
};

int run(const Options& options) {
  Renderer renderer(options);
  JsonlReader reader(options.messages);
  std::optional<LineWriter> writer;  // opened when there is something to write
  while (const auto row = reader.next_ordered()) {
    const std::string line = renderer.line_of(*row, reader.place());
    if (!writer) {
      writer.emplace(options.json);
    }
    writer->write(line);
  }
  reader.need_rows();
  writer->finish();
  return options.check && !renderer.all_ok() ? 1 : 0;
}

}  // namespace

void set_up_render(CommandLine& line) {
  const auto options = std::make_shared<Options>();
  line.need("--model", options->model, "a folder, a .gguf file, or org/name in the cache");
  line.need("--messages", options->messages, "rows {\"messages\", \"tools\"?, ...}; - is input");
  line.add("--tools", options->tools, "a JSON list of tools, for rows without their own");
  line.flag("--add-generation-prompt",
            options->add_generation_prompt,
            "end with the start of the model's turn");
  line.flag("--ids", options->ids, "token ids instead of text");
  line.flag("--check",
            options->check,
            "whether each turn leaves the text before it as it was; status 1 where one does not");
  line.add("--json", options->json, "write to this file instead of standard output");
  line.run([options] { return run(*options); });
}

}  // namespace tandem::app
