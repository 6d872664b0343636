#include "text/chat_template.h"

#include <algorithm>
#include <map>
#include <set>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/shared_data.h"
#include "text/golden_time.h"
#include "text/read_file.h"

namespace tandem::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

const std::map<std::string, std::string>& golden_tokens() {
  static const std::map<std::string, std::string> tokens = {{"bos_token", "<|bos|>"},
                                                            {"eos_token", "<|eos|>"},
                                                            {"pad_token", "<|pad|>"},
                                                            {"unk_token", "<|unk|>"}};
  return tokens;
}

std::string golden_source(const std::string& name) {
  const std::size_t hash = name.find('#');
  const std::string content = test::read_file(test::shared_data() / name.substr(0, hash));
  return hash == std::string::npos ? content
                                   : Json::parse(content)[name.substr(hash + 1)].get<std::string>();
}

// Character ranges to byte ranges.
std::pair<std::int64_t, std::int64_t> bytes_of(const std::string& text, const Json& span) {
  std::vector<std::int64_t> starts;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
      starts.push_back(static_cast<std::int64_t>(i));
    }
  }
  return {starts.at(span[0].get<std::size_t>()), starts.at(span[1].get<std::size_t>())};
}

// Empty when the case holds, else what went wrong.
std::string check_golden(const ChatTemplate* chat, const Json& row, const Json& contexts) {
  Json context = contexts[row["context"].get<std::string>()];
  context["add_generation_prompt"] = row["add_generation_prompt"];
  try {
    if (chat == nullptr) {
      throw UserError("does not parse");
    }
    const ChatTemplate::Rendered got = chat->render_with_spans(context);
    if (row.contains("error")) {
      return "no error, wanted: " + row["error"].get<std::string>();
    }
    const auto wanted = row["output"].get<std::string>();
    if (got.text != wanted) {
      return "got:\n" + got.text + "\nwanted:\n" + wanted;
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> spans;
    for (const Json& span : row.value("generation_spans", Json::array())) {
      spans.push_back(bytes_of(wanted, span));
    }
    const bool has_spans = row.contains("generation_spans");
    return !has_spans || spans == got.generation_spans ? "" : "generation spans differ";
  } catch (const UserError& error) {
    return row.contains("error") ? "" : std::string("error: ") + error.what();
  }
}

bool is_supported_family(const std::string& name) {
  static const std::vector<std::string> kParts = {"mistral-common/",
                                                  "meta-llama-Llama-3",
                                                  "llama3",
                                                  "Qwen-Qwen2.5",
                                                  "Qwen-Qwen3-0.6B",
                                                  "tokenizers/qwen",
                                                  "trl/chat_templates/qwen2_5.jinja",
                                                  "trl/chat_templates/qwen2_5_training.jinja",
                                                  "trl/chat_templates/qwen3.jinja",
                                                  "trl/chat_templates/qwen3_training.jinja",
                                                  "qwen3_instruct_2507",
                                                  "mistralai-",
                                                  "Mistral-Small",
                                                  "tool_chat_template_mistral",
                                                  "template_chatml",
                                                  "phi3",
                                                  "gemma3",
                                                  "gemma.jinja"};
  return std::ranges::any_of(
      kParts, [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

TEST_CASE("the golden conversations render as in transformers") {
  TANDEM_NEEDS_SHARED("golden/chat_templates/cases.jsonl");
  const fs::path folder = test::shared_data() / "golden/chat_templates";
  const Json contexts = Json::parse(test::read_file(folder / "contexts.json"));
  std::map<std::string, std::unique_ptr<ChatTemplate>> templates;
  std::map<std::string, int> failures;
  int num_cases = 0;
  int num_passed = 0;
  int num_supported = 0;
  for (const std::string& line : test::read_lines(folder / "cases.jsonl")) {
    const Json row = Json::parse(line);
    const auto name = row["template"].get<std::string>();
    if (!templates.contains(name)) {
      templates[name] = nullptr;
      try {
        templates[name] =
            std::make_unique<ChatTemplate>(golden_source(name), golden_tokens(), test::golden_time);
      } catch (const UserError& error) {
        MESSAGE(name << ": " << std::string(error.what()));
      }
    }
    const std::string wrong = check_golden(templates[name].get(), row, contexts);
    ++num_cases;
    num_passed += wrong.empty() ? 1 : 0;
    failures[name] += wrong.empty() ? 0 : 1;
    if (is_supported_family(name)) {
      ++num_supported;
      CAPTURE(name);
      CAPTURE(row["context"].get<std::string>());
      CHECK(wrong == "");
    } else if (!wrong.empty() && failures[name] == 1) {
      MESSAGE(name << " " << row["context"].get<std::string>() << ": " << wrong);
    }
  }
  MESSAGE(num_passed << " of " << num_cases << " golden renderings, " << num_supported
                     << " of them of supported families");
  CHECK(num_cases == 3306);
  CHECK(num_passed == num_cases);
}

}  // namespace
}  // namespace tandem::text
