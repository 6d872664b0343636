#include "text/gguf_vocabulary.h"

#include <cstring>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "support/shared_data.h"
#include "text/read_file.h"
#include "text/text_file.h"
#include "text/tokenizer.h"

namespace tandem::text {
namespace {

using nlohmann::json;

json read_tokenizer_json(const std::string& folder) {
  return json::parse(*read_text_file(test::shared_data() / folder / "tokenizer.json"));
}

std::vector<std::string> tokens_by_id(const json& tokenizer) {
  std::vector<std::string> tokens(tokenizer["model"]["vocab"].size());
  for (const auto& [token, id] : tokenizer["model"]["vocab"].items()) {
    tokens.at(id.get<std::size_t>()) = token;
  }
  return tokens;
}

GgufVocabulary empty_vocabulary(const std::string& model, const std::string& pre) {
  GgufVocabulary vocabulary;
  vocabulary.name = "x.gguf";
  vocabulary.model = model;
  vocabulary.pre = pre;
  return vocabulary;
}

// The metadata that a converter writes for a byte-level tokenizer.json.
GgufVocabulary byte_level_vocabulary(const std::string& folder, const std::string& pre) {
  const json tokenizer = read_tokenizer_json(folder);
  GgufVocabulary vocabulary = empty_vocabulary("gpt2", pre);
  vocabulary.tokens = tokens_by_id(tokenizer);
  for (const json& merge : tokenizer["model"]["merges"]) {
    vocabulary.merges.push_back(merge.is_string() ? merge.get<std::string>()
                                                  : merge[0].get<std::string>() + " " +
                                                        merge[1].get<std::string>());
  }
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  for (const json& token : tokenizer["added_tokens"]) {
    const auto id = token["id"].get<std::size_t>();
    vocabulary.tokens.resize(std::max(vocabulary.tokens.size(), id + 1));
    vocabulary.token_types.resize(vocabulary.tokens.size(), 1);
    vocabulary.tokens[id] = token["content"].get<std::string>();
    vocabulary.token_types[id] = token["special"].get<bool>() ? 3 : 4;
  }
  return vocabulary;
}

void check_golden(const Tokenizer& tokenizer, const std::string& golden) {
  const json cases =
      json::parse(test::read_file(test::shared_data() / "golden/tokenizers" / golden));
  for (const json& row : cases["cases"]) {
    const auto text = row["text"].get<std::string>();
    CAPTURE(golden);
    CAPTURE(text);
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    CHECK(tokenizer.encode(text, {.add_special_tokens = false}) == ids);
    CHECK(tokenizer.encode(text) == row.value("ids_special", ids));
    CHECK(tokenizer.decode(ids, false) == row.value("decoded", text));
  }
}

TEST_CASE("byte-level vocabularies give the ids of their tokenizer.json") {
  TANDEM_NEEDS_SHARED("golden/tokenizers");
  check_golden(Tokenizer::from_gguf(byte_level_vocabulary("tokenizers/smollm2", "smollm")),
               "smollm2.json");
  check_golden(Tokenizer::from_gguf(byte_level_vocabulary("tokenizers/gpt2", "gpt-2")),
               "gpt2.json");
  check_golden(Tokenizer::from_gguf(byte_level_vocabulary("tokenizers/qwen2_5", "qwen2")),
               "qwen2_5.json");
}

TEST_CASE("a SentencePiece vocabulary with scores gives the ids of its tokenizer.json") {
  TANDEM_NEEDS_SHARED("stories260K/tok512.bin");
  const std::string bytes = test::read_file(test::shared_data() / "stories260K/tok512.bin");
  GgufVocabulary vocabulary = empty_vocabulary("llama", "");
  vocabulary.tokens = tokens_by_id(read_tokenizer_json("stories260K/hf"));
  std::size_t at = 4;  // after the longest length; then score, length and bytes of each token
  while (at < bytes.size()) {
    float score = 0;
    std::int32_t length = 0;
    std::memcpy(&score, bytes.data() + at, sizeof(score));
    std::memcpy(&length, bytes.data() + at + 4, sizeof(length));
    vocabulary.scores.push_back(score);
    at += 8 + static_cast<std::size_t>(length);
  }
  vocabulary.token_types.assign(vocabulary.tokens.size(), 1);
  std::fill_n(vocabulary.token_types.begin() + 3, 256, 6);  // <0x00> to <0xFF>
  vocabulary.token_types[0] = 2;
  vocabulary.token_types[1] = vocabulary.token_types[2] = 3;
  vocabulary.unknown_id = 0;
  vocabulary.bos_id = 1;
  vocabulary.eos_id = 2;
  vocabulary.chat_template = "{{ bos_token }}";
  const Tokenizer tokenizer = Tokenizer::from_gguf(vocabulary);
  check_golden(tokenizer, "stories260K.json");
  CHECK(tokenizer.bos_id() == 1);
  CHECK(tokenizer.eos_id() == 2);
  CHECK_FALSE(tokenizer.pad_id().has_value());
  CHECK(tokenizer.chat_template() == "{{ bos_token }}");
}

TEST_CASE("the written files are a tokenizer folder") {
  GgufVocabulary vocabulary = empty_vocabulary("gpt2", "default");
  vocabulary.tokens = {"a", "b", "ab", "<end>"};
  vocabulary.merges = {"a b"};
  vocabulary.token_types = {1, 1, 1, 3};
  vocabulary.eos_id = 3;
  vocabulary.bos_id = 3;
  vocabulary.add_bos = true;
  const auto files = Tokenizer::from_gguf(vocabulary).files();
  CHECK(files.size() == 3);
  const Tokenizer again =
      Tokenizer::from_json(files.at("tokenizer.json"), files.at("tokenizer_config.json"), "again");
  CHECK(again.encode("ab<end>") == std::vector<TokenId>{3, 2, 3});
  CHECK(again.eos_id() == 3);
  CHECK(again.files().at("tokenizer.json") == files.at("tokenizer.json"));
}

TEST_CASE("what is not supported or does not fit is named") {
  const auto error_of = [](const GgufVocabulary& vocabulary) -> std::string {
    try {
      Tokenizer::from_gguf(vocabulary);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  GgufVocabulary vocabulary = empty_vocabulary("bert", "");
  vocabulary.tokens = {"a"};
  CHECK(error_of(vocabulary) ==
        "x.gguf: tokenizer.ggml.model \"bert\" is not supported; gpt2 and llama are");
  vocabulary.model = "llama";
  CHECK(error_of(vocabulary) == "x.gguf: tokenizer.ggml.scores has 0 entries for 1 tokens");
  vocabulary.model = "gpt2";
  vocabulary.pre = "falcon";
  CHECK(error_of(vocabulary).starts_with("x.gguf: tokenizer.ggml.pre \"falcon\" is not supported"));
  vocabulary.pre = "default";
  vocabulary.eos_id = 7;
  CHECK(error_of(vocabulary) == "x.gguf: a special token has id 7, there are 1 tokens");
  vocabulary.eos_id.reset();
  vocabulary.merges = {"ab"};
  CHECK(error_of(vocabulary) == "x.gguf: tokenizer.ggml.merges[0] is not two tokens");
}

}  // namespace
}  // namespace tandem::text
