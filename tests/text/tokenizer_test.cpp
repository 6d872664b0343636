#include "text/tokenizer.h"

#include <fstream>
#include <sstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "support/shared_data.h"
#include "text/detokenizer.h"

namespace tandem::text {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string read(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::stringstream content;
  content << stream.rdbuf();
  return content.str();
}

// The golden's "source" is a folder's tokenizer.json, or a file of another name.
Tokenizer load(const std::string& source) {
  const fs::path path = test::shared_data() / source;
  const std::string name = path.filename().string();
  if (name == "tokenizer.json" || name == "tokenizer.json.gz") {
    return Tokenizer::from_folder(path.parent_path());
  }
  return Tokenizer::from_json(read(path), "", name);
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
    const json golden = json::parse(read(entry.path()));
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

}  // namespace
}  // namespace tandem::text
