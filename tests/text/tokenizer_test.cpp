#include "text/tokenizer.h"

#include <random>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/shared_data.h"
#include "text/detokenizer.h"
#include "text/read_file.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::read_file;

// The golden's "source" is a folder's tokenizer.json, or a file of another name.
Tokenizer load(const std::string& source) {
  const fs::path path = test::shared_data() / source;
  const std::string name = path.filename().string();
  if (name == "tokenizer.json" || name == "tokenizer.json.gz") {
    return Tokenizer::from_folder(path.parent_path());
  }
  return Tokenizer::from_json(read_file(path), "", name);
}

std::string stream_decode(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, bool skip) {
  Detokenizer detokenizer(tokenizer, skip);
  std::string text;
  for (const TokenId id : ids) {
    text += detokenizer.push(id);
  }
  return text + detokenizer.finish();
}

void check_case(const Tokenizer& tokenizer, const json& row) {
  const auto text = row["text"].get<std::string>();
  const auto ids = row["ids"].get<std::vector<TokenId>>();
  CAPTURE(text);
  CHECK(tokenizer.encode(text, {.add_special_tokens = false}) == ids);
  CHECK(tokenizer.encode(text) == row.value("ids_special", ids));
  const auto decoded = row.value("decoded", text);
  CHECK(tokenizer.decode(ids, false) == decoded);
  CHECK(stream_decode(tokenizer, ids, false) == decoded);
  const auto skipped = row.value("decoded_skip_special", decoded);
  CHECK(tokenizer.decode(ids, true) == skipped);
  CHECK(stream_decode(tokenizer, ids, true) == skipped);
}

TEST_CASE("every golden tokenizer gives the reference's ids and texts") {
  TANDEM_NEEDS_SHARED("golden/tokenizers");
  int num_files = 0;
  for (const auto& entry : fs::directory_iterator(test::shared_data() / "golden/tokenizers")) {
    const json golden = json::parse(read_file(entry.path()));
    CAPTURE(entry.path().filename().string());
    const Tokenizer tokenizer = load(golden["source"].get<std::string>());
    CHECK(tokenizer.size() == golden["vocab_size"].get<std::int64_t>());
    for (const json& row : golden["cases"]) {
      check_case(tokenizer, row);
    }
    ++num_files;
  }
  CHECK(num_files == 9);
}

// Texts of a file of llama.cpp's vectors, and the ids of each.
void check_vectors(const std::string& name, const std::string& folder) {
  const fs::path path = test::shared_data() / "llama.cpp/tokenizer_vectors" / name;
  const Tokenizer tokenizer = Tokenizer::from_folder(test::shared_data() / folder);
  const std::string separator = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(path.string() + ".inp");
  std::size_t begin = 0;
  int num_texts = 0;
  for (const std::string& line : test::read_lines(path.string() + ".out")) {
    const std::size_t end = std::min(texts.find(separator, begin), texts.size());
    const std::string text = texts.substr(begin, end - begin);
    begin = end + separator.size();
    std::istringstream numbers(line);
    std::vector<TokenId> ids;
    for (TokenId id = 0; numbers >> id;) {
      ids.push_back(id);
    }
    CAPTURE(name);
    CAPTURE(text);
    CHECK(tokenizer.encode(text, {.add_special_tokens = false}) == ids);
    ++num_texts;
  }
  CHECK(num_texts == 46);
}

TEST_CASE("llama.cpp's vectors of the vocabularies that we have") {
  TANDEM_NEEDS_SHARED("llama.cpp/tokenizer_vectors");
  check_vectors("ggml-vocab-gpt-2.gguf", "tokenizers/gpt2");
  check_vectors("ggml-vocab-phi-3.gguf", "tokenizers/phi3");
  check_vectors("ggml-vocab-llama-spm.gguf", "tokenizers/phi3");  // Phi-3 extends its vocabulary
  check_vectors("ggml-vocab-qwen2.gguf", "tokenizers/qwen2_5");
}

TEST_CASE("swift-transformers' vectors of GPT-2") {
  TANDEM_NEEDS_SHARED("swift-transformers/tokenizer_vectors/tokenizer_tests.json");
  const json all = json::parse(
      read_file(test::shared_data() / "swift-transformers/tokenizer_vectors/tokenizer_tests.json"));
  const Tokenizer tokenizer = Tokenizer::from_folder(test::shared_data() / "tokenizers/gpt2");
  for (const json& row : all["distilgpt2"]) {
    const auto ids = row["encoded"]["input_ids"].get<std::vector<TokenId>>();
    const auto text = row["input"].get<std::string>();
    CHECK(tokenizer.encode(text) == ids);
    CHECK(tokenizer.decode(ids, false) == text);  // their decoding tidies spaces up
  }
}

// Ids in any order break characters apart in every way.
TEST_CASE("the deltas of random ids are valid UTF-8 and add up to the decoded text") {
  TANDEM_NEEDS_SHARED("tokenizers");
  std::mt19937 random(11);
  for (const char* folder : {"tokenizers/gpt2", "tokenizers/phi3", "stories260K/hf"}) {
    const Tokenizer tokenizer = Tokenizer::from_folder(test::shared_data() / folder);
    const auto most = std::min<std::int64_t>(tokenizer.size(), 1000);  // byte tokens come first
    for (int round = 0; round < 200; ++round) {
      std::vector<TokenId> ids(random() % 30);
      for (TokenId& id : ids) {
        id = static_cast<TokenId>(random() % most);
      }
      Detokenizer detokenizer(tokenizer);
      std::string text;
      for (const TokenId id : ids) {
        const std::string delta = detokenizer.push(id);
        REQUIRE(is_valid_utf8(delta));
        text += delta;
      }
      text += detokenizer.finish();
      REQUIRE(text == tokenizer.decode(ids, true));
    }
  }
}

TEST_CASE("a character is held back until its last byte token") {
  TANDEM_NEEDS_SHARED("tokenizers/gpt2");
  const Tokenizer tokenizer = Tokenizer::from_folder(test::shared_data() / "tokenizers/gpt2");
  const auto ids = tokenizer.encode("\xF0\x9F\xA6\x99!");  // a llama, several tokens
  REQUIRE(ids.size() > 2);
  Detokenizer detokenizer(tokenizer);
  CHECK(detokenizer.push(ids[0]).empty());
  Detokenizer broken(tokenizer);
  CHECK(broken.push(ids[0]).empty());
  CHECK(broken.finish() == kReplacement);
}

}  // namespace
}  // namespace tandem::text
