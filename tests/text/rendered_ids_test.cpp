// Conversations to ids: template and tokenizer together, and the loss mask.
#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/shared_data.h"
#include "text/chat_template.h"
#include "text/golden_time.h"
#include "text/read_file.h"
#include "text/token_spans.h"
#include "text/tokenizer.h"

namespace tandem::text {
namespace {

using Json = nlohmann::ordered_json;
using Ids = std::vector<TokenId>;

constexpr EncodeOptions kNothingAdded{.add_special_tokens = false};

TEST_CASE("SmolLM2's conversations give the reference's text and ids") {
  TANDEM_NEEDS_SHARED("golden/smollm2/chat.json");
  TANDEM_NEEDS_SHARED("tokenizers/smollm2");
  const auto data = test::shared_data();
  const Json golden = Json::parse(test::read_file(data / "golden/smollm2/chat.json"));
  const Tokenizer tokenizer = Tokenizer::from_folder(data / "tokenizers/smollm2");
  CHECK(tokenizer.chat_template().has_value());
  const ChatTemplate chat(golden["chat_template"].get<std::string>(), tokenizer);
  CHECK(golden["cases"].size() == 10);
  for (const Json& row : golden["cases"]) {
    const Json context = {{"messages", row["messages"]},
                          {"add_generation_prompt", row["add_generation_prompt"]}};
    const std::string text = chat.render(context);
    CHECK(text == row["text"].get<std::string>());
    CHECK(tokenizer.encode(text) == row["ids"].get<Ids>());
  }
}

TEST_CASE("Qwen's conversations give the reference's ids and assistant masks") {
  TANDEM_NEEDS_SHARED("golden/chat_templates/qwen_token_ids.json");
  const auto data = test::shared_data();
  const auto folder = data / "golden/chat_templates";
  const Json contexts = Json::parse(test::read_file(folder / "contexts.json"));
  std::map<std::string, Tokenizer> tokenizers;
  int num_masks = 0;
  for (const Json& row : Json::parse(test::read_file(folder / "qwen_token_ids.json"))) {
    const auto name = row["tokenizer"].get<std::string>();
    if (!tokenizers.contains(name)) {
      tokenizers.emplace(name, Tokenizer::from_folder(data / name));
    }
    const Tokenizer& tokenizer = tokenizers.at(name);
    const auto file = row["template"].get<std::string>();
    const std::string source = file.find('#') != std::string::npos ? *tokenizer.chat_template()
                                                                   : test::read_file(data / file);
    Json context = contexts[row["context"].get<std::string>()];
    context["add_generation_prompt"] = row["add_generation_prompt"];
    CAPTURE(file);
    CAPTURE(row["context"].get<std::string>());
    const ChatTemplate chat(source, tokenizer);
    const ChatTemplate::Rendered rendered = chat.render_with_spans(context);
    const Ids ids = tokenizer.encode(rendered.text, kNothingAdded);
    CHECK(ids == row["ids"].get<Ids>());
    if (row.contains("assistant_mask")) {
      const auto spans = token_spans(tokenizer, rendered.text, ids);
      REQUIRE(spans.has_value());
      CHECK(mask_of_spans(*spans, rendered.generation_spans) ==
            row["assistant_mask"].get<std::vector<std::uint8_t>>());
      ++num_masks;
    }
  }
  CHECK(num_masks == 42);
}

TEST_CASE("tokens that share a character span all of it") {
  TANDEM_NEEDS_SHARED("tokenizers/gpt2");
  const Tokenizer tokenizer = Tokenizer::from_folder(test::shared_data() / "tokenizers/gpt2");
  const std::string text = "a\xF0\x9F\xA6\x99z";
  const Ids ids = tokenizer.encode(text);
  const auto spans = token_spans(tokenizer, text, ids);
  REQUIRE(spans.has_value());
  REQUIRE(spans->size() > 3);
  CHECK(spans->front() == ByteSpan{0, 1});
  for (std::size_t i = 1; i + 1 < spans->size(); ++i) {
    CHECK((*spans)[i] == ByteSpan{1, 5});
  }
  CHECK(spans->back() == ByteSpan{5, 6});
  CHECK_FALSE(token_spans(tokenizer, "b", ids).has_value());
}

}  // namespace
}  // namespace tandem::text
