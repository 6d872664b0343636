// What tokenizer files may hold: special tokens, the parts of the pipeline, and errors.
#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <zlib.h>

#include "base/error.h"
#include "support/shared_data.h"
#include "support/temporary_folder.h"
#include "text/text_file.h"
#include "text/tokenizer.h"

namespace tandem::text {
namespace {

using Ids = std::vector<TokenId>;
using nlohmann::json;

// A vocabulary of single letters, a space and a few words, with other parts as given.
Tokenizer letters(const std::string& parts) {
  json vocab;
  for (char c = 'a'; c <= 'z'; ++c) {
    vocab[std::string(1, c)] = c - 'a';
  }
  vocab[" "] = 26;
  vocab["_"] = 27;
  const json model = {{"type", "BPE"}, {"vocab", vocab}, {"merges", json::array()}};
  return Tokenizer::from_json(
      "{" + parts + (parts.empty() ? "" : ",") + "\"model\":" + model.dump() + "}", "", "t.json");
}

std::string text_of(const Tokenizer& tokenizer, const Ids& ids) {
  std::string out;
  for (const TokenId id : ids) {
    out += (out.empty() ? "" : "|") + *tokenizer.token_of(id);
  }
  return out;
}

std::string cut(const std::string& parts, const std::string& text) {
  const Tokenizer tokenizer = letters(parts);
  return text_of(tokenizer, tokenizer.encode(text));
}

std::string error_of(const std::string& tokenizer_json) {
  try {
    Tokenizer::from_json(tokenizer_json, "", "t.json");
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

void write(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

TEST_CASE("added tokens: longest first, white space beside them, whole words") {
  const std::string parts = R"("added_tokens": [
      {"id": 30, "content": "<x>", "special": true, "normalized": false},
      {"id": 31, "content": "<x><y>", "special": true, "normalized": false},
      {"id": 32, "content": "<l>", "special": false, "normalized": false, "lstrip": true},
      {"id": 33, "content": "<r>", "special": false, "normalized": false, "rstrip": true},
      {"id": 34, "content": "word", "special": false, "normalized": false, "single_word": true}])";
  CHECK(cut(parts, "a<x>b") == "a|<x>|b");
  CHECK(cut(parts, "<x><y><x>") == "<x><y>|<x>");
  CHECK(cut(parts, "a  <l> b") == "a|<l>| |b");
  CHECK(cut(parts, "a <r>  b") == "a| |<r>|b");
  CHECK(cut(parts, "a word b") == "a| |word| |b");
  CHECK(cut(parts, "words") == "w|o|r|d|s");
  CHECK(cut(parts, "<x") == "x");
  const Tokenizer tokenizer = letters(parts);
  CHECK(tokenizer.is_special(30));
  CHECK_FALSE(tokenizer.is_special(32));
  CHECK(tokenizer.size() == 35);
  const auto typed = tokenizer.encode("<x><l>a", {.allow_special = false});
  CHECK(text_of(tokenizer, typed) == "x|<l>|a");  // only special ones are kept from being typed
  CHECK(tokenizer.decode(Ids{0, 30, 1}, true) == "a b");
}

TEST_CASE("a normalized added token is found in the normalized text") {
  const std::string token =
      R"("added_tokens": [{"id": 30, "content": "ABC", "special": false, "normalized": NORM}],
         "normalizer": {"type": "Lowercase"})";
  std::string normalized = token;
  normalized.replace(normalized.find("NORM"), 4, "true");
  std::string raw = token;
  raw.replace(raw.find("NORM"), 4, "false");
  CHECK(cut(normalized, "xabC") == "x|ABC");
  CHECK(cut(raw, "xabC") == "x|a|b|c");
}

TEST_CASE("normalizers") {
  const auto normalizer = [](const std::string& n) { return R"("normalizer": )" + n; };
  CHECK(cut(normalizer(R"({"type": "Strip", "strip_left": true, "strip_right": false})"), "  a ") ==
        "a| ");
  CHECK(cut(normalizer(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"})"),
            "a   b c") == "a|_|b|_|c");
  CHECK(cut(normalizer(R"({"type": "Sequence", "normalizers": [{"type": "NFD"},
      {"type": "StripAccents"}]})"),
            "\xC3\xA9") == "e");
  CHECK(cut(normalizer(R"({"type": "NFKC"})"), "\xEF\xBD\x81") == "a");
  CHECK(cut(normalizer(R"({"type": "Prepend", "prepend": "_"})"), "a") == "_|a");
  CHECK(cut(normalizer(R"({"type": "Prepend", "prepend": "_"})"), "") == "");
}

TEST_CASE("pre-tokenizers keep words apart in the model") {
  // "ab" merges unless a cut stands between the letters.
  const auto words = [](const std::string& pre, const std::string& text) {
    const Tokenizer tokenizer =
        Tokenizer::from_json(R"({"pre_tokenizer": )" + pre + R"(, "model": {"type": "BPE",
            "vocab": {"a": 0, "b": 1, "-": 2, "_": 3, "1": 4, " ": 5, "a-": 6, "-b": 7, "--": 8,
                      "_a": 9, "11": 10, "ab": 11},
            "merges": ["a -", "- b", "- -", "_ a", "1 1", "a b"]}})",
                             "",
                             "t.json");
    return text_of(tokenizer, tokenizer.encode(text));
  };
  const auto split = [](const std::string& behavior) {
    return R"({"type": "Split", "pattern": {"String": "-"}, "behavior": ")" + behavior +
           R"(", "invert": false})";
  };
  CHECK(words(split("Isolated"), "a--b") == "a|-|-|b");
  CHECK(words(split("Removed"), "a-b") == "a|b");
  CHECK(words(split("MergedWithPrevious"), "a-b") == "a-|b");
  CHECK(words(split("MergedWithNext"), "a-b") == "a|-b");
  CHECK(words(split("Contiguous"), "a--b") == "a|--|b");
  CHECK(words(R"({"type": "Digits", "individual_digits": true})", "a11b") == "a|1|1|b");
  CHECK(words(R"({"type": "Digits", "individual_digits": false})", "a11b") == "a|11|b");
  CHECK(words(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"})", "a a") ==
        "_a|_a");
  CHECK(words(R"({"type": "Metaspace", "replacement": "_", "prepend_scheme": "never"})", "a a") ==
        "a|_a");
  CHECK(words(R"({"type": "Whitespace"})", "a- a") == "a|-|a");
  CHECK(words(R"({"type": "Punctuation"})", "a-b") == "a|-|b");
  CHECK(words(R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}]})", "a b") ==
        "a|b");
}

TEST_CASE("broken UTF-8 in a text counts as U+FFFD") {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"model": {"type": "BPE", "vocab": {"a": 0, "\uFFFD": 1}, "merges": []}})", "", "t.json");
  CHECK(tokenizer.encode("a\xFF"
                         "a\xE2\x82") == Ids{0, 1, 0, 1});
}

TEST_CASE("bad tokenizer.json contents are one-line errors that name the place") {
  CHECK(error_of("") == "t.json:1:1: not valid JSON: it is empty; fetch the file again");
  CHECK(error_of("{\n \"model\": {") ==
        "t.json:2:12: not valid JSON: it ends early; fetch the file again");
  CHECK(error_of("{\n nonsense }") ==
        "t.json:2:3: not valid JSON: syntax error; fetch the file again");
  CHECK(error_of("[]") == "t.json: is array, not an object; fetch the file again");
  CHECK(error_of("{}") == "t.json: lacks \"model\"");
  CHECK(error_of(R"({"model": {"type": "Unigram"}})") ==
        "t.json: model: models of type \"Unigram\" are not supported, BPE is");
  CHECK(error_of(R"({"model": {"vocab": {}}})") == "t.json: model: lacks \"merges\"");
  CHECK(error_of(R"({"model": {"vocab": [], "merges": []}})") ==
        "t.json: model.vocab: is array, not an object");
  CHECK(error_of(R"({"model": {"vocab": {"a": 99999999999}, "merges": []}})") ==
        "t.json: model.vocab: the id of token \"a\" is no integer from 0 to 16777215");
  CHECK(error_of(R"({"model": {"vocab": {"a": -1}, "merges": []}})") ==
        "t.json: model.vocab: the id of token \"a\" is no integer from 0 to 16777215");
  CHECK(error_of(R"({"model": {"vocab": {"a": 0}, "merges": ["a b"]}})") ==
        "t.json: model.merges[0]: token \"b\" is not in the vocabulary");
  CHECK(error_of(R"({"model": {"vocab": {"a": 0}, "merges": ["ab"]}})") ==
        "t.json: model.merges[0]: is not two tokens with a space between them");
  CHECK(error_of(R"({"normalizer": {"type": "Odd"}, "model": {}})") ==
        "t.json: normalizer: normalizers of type \"Odd\" are not supported");
  CHECK(error_of(R"({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "("}},
                     "model": {"vocab": {}, "merges": []}})")
            .starts_with("t.json: pre_tokenizer.pattern.Regex: the regular expression does not"));
  CHECK(error_of(R"({"added_tokens": [{"id": 1}], "model": {"vocab": {}, "merges": []}})") ==
        "t.json: added_tokens[0]: lacks \"content\"");
}

TEST_CASE("files: missing, damaged, and too large ones are named") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(Tokenizer::from_folder(folder.path()), UserError);
  write(folder / "tokenizer.json.gz", "not gzip");
  CHECK_THROWS_AS(Tokenizer::from_folder(folder.path()), UserError);
  write(folder / "large.txt", std::string(1000, 'x'));
  CHECK_THROWS_AS(static_cast<void>(read_text_file(folder / "large.txt", 999)), UserError);
  CHECK(read_text_file(folder / "large.txt", 1000)->size() == 1000);
  CHECK_FALSE(read_text_file(folder / "none.txt").has_value());
}

TEST_CASE("a wrong file beside tokenizer.json is named, with its place") {
  const auto error_of_other = [](const std::string& name, const std::string& content) {
    const test::TemporaryFolder folder;
    write(folder / "tokenizer.json", R"({"model": {"vocab": {"a": 0}, "merges": []}})");
    write(folder / name, content);
    try {
      Tokenizer::from_folder(folder.path());
    } catch (const UserError& error) {
      const std::string what = error.what();
      CHECK(what.starts_with((folder / name).string() + ":"));
      return what.substr(folder.path().string().size() + 1);
    }
    return std::string("no error");
  };
  const std::string config = "tokenizer_config.json";
  const std::string remedy = "; fetch the file again, or remove it";
  for (const std::string& name : {config, std::string("special_tokens_map.json")}) {
    CHECK(error_of_other(name, "") == name + ":1:1: not valid JSON: it is empty" + remedy);
    CHECK(error_of_other(name, "{\"a\":") == name + ":1:6: not valid JSON: it ends early" + remedy);
    CHECK(error_of_other(name, "nonsense") == name + ":1:2: not valid JSON: syntax error" + remedy);
    CHECK(error_of_other(name, "[]") == name + ": is array, not an object" + remedy);
    CHECK(error_of_other(name, R"({"eos_token": 5})") ==
          name + R"(: eos_token: is number, neither a string nor {"content": ...})");
    CHECK(error_of_other(name, R"({"eos_token": {}})") == name + R"(: eos_token: lacks "content")");
    CHECK(error_of_other(name, R"({"eos_token": null})") == "no error");
    CHECK(error_of_other(name, "{}") == "no error");
  }
  CHECK(error_of_other(config, R"({"chat_template": 5})") ==
        config +
            ": chat_template: is number, neither a string nor an array of templates; "
            "put the template's text there");
  CHECK(error_of_other(config, R"({"chat_template": ["T"]})") ==
        config + ": chat_template[0]: is string, not an object");
  CHECK(error_of_other(config, R"({"chat_template": [{"name": "default"}]})") ==
        config + R"(: chat_template[0]: lacks "template")");
}

TEST_CASE("a gzip file that unpacks to more than the limit is refused") {
  const test::TemporaryFolder folder;
  const std::string path = (folder / "bomb.gz").string();
  gzFile file = gzopen(path.c_str(), "wb9");
  const std::string zeros(1 << 20, '0');
  gzwrite(file, zeros.data(), static_cast<unsigned>(zeros.size()));
  gzclose(file);
  CHECK_THROWS_AS(static_cast<void>(read_text_file(folder / "bomb", 1 << 19)), UserError);
  CHECK(read_text_file(folder / "bomb")->size() == zeros.size());
}

TEST_CASE("special tokens, template and files come from the folder, and go back into one") {
  const test::TemporaryFolder folder;
  const std::string tokenizer_json =
      R"({"added_tokens": [{"id": 1, "content": "<e>", "special": true}],
          "model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})";
  write(folder / "tokenizer.json", tokenizer_json);
  write(folder / "tokenizer_config.json",
        R"({"eos_token": {"content": "<e>"}, "pad_token": "absent", "bos_token": null,
            "chat_template": [{"name": "tool_use", "template": "T"},
                              {"name": "default", "template": "D"}]})");
  const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
  CHECK(tokenizer.eos_id() == 1);
  CHECK_FALSE(tokenizer.pad_id().has_value());
  CHECK_FALSE(tokenizer.bos_id().has_value());
  CHECK(tokenizer.special_tokens().at("pad_token") == "absent");
  CHECK(tokenizer.chat_template() == "D");
  CHECK(tokenizer.files().at("tokenizer.json") == tokenizer_json);
  CHECK(tokenizer.files().size() == 2);
  write(folder / "chat_template.jinja", "J");
  CHECK(Tokenizer::from_folder(folder.path()).chat_template() == "J");
}

}  // namespace
}  // namespace tandem::text
