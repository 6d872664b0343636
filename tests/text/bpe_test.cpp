#include "text/bpe.h"

#include <random>
#include <thread>

#include <doctest/doctest.h>

#include "base/error.h"
#include "text/tokenizer.h"

namespace tandem::text {
namespace {

// The definition: the lowest rank of all adjacent pairs, the leftmost of equals, until none is
// left.
std::vector<TokenId> merge_by_definition(const MergeTable& merges, std::vector<TokenId> symbols) {
  while (true) {
    std::size_t best = symbols.size();
    const MergeTable::Merge* merge = nullptr;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto* found = merges.find(symbols[i], symbols[i + 1]);
      if (found != nullptr && (merge == nullptr || found->rank < merge->rank)) {
        merge = found;
        best = i;
      }
    }
    if (merge == nullptr) {
      return symbols;
    }
    symbols[best] = merge->id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST_CASE("short and long words merge as the definition says") {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int num_base = 2 + static_cast<int>(random() % 4);
    MergeTable merges(40);
    for (int rank = 0; rank < 40; ++rank) {
      const int known = num_base + rank;
      merges.add(static_cast<TokenId>(random() % known),
                 static_cast<TokenId>(random() % known),
                 {.rank = rank, .id = known});
    }
    std::vector<TokenId> symbols(random() % 80);
    for (TokenId& symbol : symbols) {
      symbol = static_cast<TokenId>(random() % num_base);
    }
    const auto wanted = merge_by_definition(merges, symbols);
    merge_symbols(merges, symbols);
    REQUIRE(symbols == wanted);
  }
}

constexpr const char* kTiny = R"({"model": {"type": "BPE", "unk_token": "?", "fuse_unk": FUSE,
  "byte_fallback": FALLBACK, "vocab": {"?": 0, "a": 1, "b": 2, "ab": 3, "<0xC3>": 4, "<0xA9>": 5},
  "merges": ["a b"]}})";

Tokenizer tiny(const char* fuse, const char* fallback) {
  std::string json = kTiny;
  json.replace(json.find("FUSE"), 4, fuse);
  json.replace(json.find("FALLBACK"), 8, fallback);
  return Tokenizer::from_json(json, "", "tiny.json");
}

using Ids = std::vector<TokenId>;

TEST_CASE("characters outside the vocabulary become the unknown token, or their bytes") {
  CHECK(tiny("false", "false").encode("abxxa") == Ids{3, 0, 0, 1});
  CHECK(tiny("true", "false").encode("abxxa") == Ids{3, 0, 1});
  CHECK(tiny("true", "true")
            .encode("\xC3\xA9"
                    "a") == Ids{4, 5, 1});
  CHECK(tiny("true", "true").encode("\xC3\xA8") == Ids{0});  // not all of its bytes are tokens
}

TEST_CASE("word prefixes and suffixes count in merges") {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "BPE",
          "continuing_subword_prefix": "##", "end_of_word_suffix": "</w>",
          "vocab": {"a": 0, "##b": 1, "##c</w>": 2, "ab": 3, "abc</w>": 4},
          "merges": ["a ##b", "ab ##c</w>"]}})",
      "",
      "prefix.json");
  CHECK(tokenizer.encode("abc") == Ids{4});
}

TEST_CASE("a long text without a split is not quadratic") {
  std::string text;
  for (int i = 0; i < 200'000; ++i) {
    text += "ab";
  }
  CHECK(tiny("false", "false").encode(text).size() == 200'000);
}

TEST_CASE("threads share one tokenizer and its cache of words") {
  const Tokenizer tokenizer = Tokenizer::from_json(
      R"({"pre_tokenizer": {"type": "WhitespaceSplit"}, "model": {"type": "BPE",
          "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})",
      "",
      "threads.json");
  std::vector<Ids> results(4);
  std::vector<std::jthread> threads;
  for (Ids& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        result = tokenizer.encode("ab ba aab bab abab");
      }
    });
  }
  threads.clear();
  for (const Ids& result : results) {
    CHECK(result == Ids{2, 1, 0, 0, 2, 1, 2, 2, 2});
  }
}

}  // namespace
}  // namespace tandem::text
