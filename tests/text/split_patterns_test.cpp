#include "text/split_patterns.h"

#include <map>
#include <random>

#include <doctest/doctest.h>

#include "text/regex.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr int kTexts = 3000;

std::vector<std::string> pieces_of_regex(SplitPattern pattern, const std::string& text) {
  static const std::map<SplitPattern, Regex> compiled = [] {
    std::map<SplitPattern, Regex> all;
    for (const auto p : {SplitPattern::kGpt2, SplitPattern::kQwen2, SplitPattern::kLlama3}) {
      all.emplace(p, Regex(std::string(regex_of(p)), "test"));
    }
    return all;
  }();
  std::vector<std::string> pieces;
  for (const ByteSpan& span : compiled.at(pattern).find_all(text)) {
    pieces.push_back(text.substr(span.begin, span.end - span.begin));
  }
  return pieces;
}

std::vector<std::string> pieces_of_matcher(SplitPattern pattern, const std::string& text) {
  std::vector<std::string_view> views;
  split_known(pattern, text, views);
  return {views.begin(), views.end()};
}

// Characters on which this Unicode version and PCRE2's agree.
bool is_settled(char32_t code) {
  static const Regex letter(R"(\p{L})", "test");
  static const Regex number(R"(\p{N})", "test");
  std::string text;
  append_utf8(text, code);
  return letter.find_all(text).empty() == (class_of(code) != kLetter) &&
         number.find_all(text).empty() == (class_of(code) != kNumber);
}

char32_t random_character(std::mt19937& random) {
  static const std::u32string kUsual = U"aZ'sStTrRveEmMlLdD09 \t\n\r\v.,!?-_(){}";
  static const std::u32string kOdd =
      U"\u017F\u00A0\u0085\u180E\u2028\u3000\u200B\u00BD\u0660\u2160\u4E2D\u00E9\u0301\u212A"
      U"\U0001F999\U0001D7D8\uFEFF";
  const auto pick = [&](std::size_t n) { return random() % n; };
  switch (pick(8)) {
    case 0:
      return kOdd[pick(kOdd.size())];
    case 1: {
      const auto code = static_cast<char32_t>(pick(0x30000));
      const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
      return surrogate || !is_settled(code) ? U'x' : code;
    }
    default:
      return kUsual[pick(kUsual.size())];
  }
}

TEST_CASE("the matchers cut random Unicode text exactly as PCRE2 does") {
  std::mt19937 random(20250710);
  for (int i = 0; i < kTexts; ++i) {
    std::string text;
    const std::size_t length = random() % 40;
    for (std::size_t k = 0; k < length; ++k) {
      append_utf8(text, random_character(random));
    }
    for (const auto pattern : {SplitPattern::kGpt2, SplitPattern::kQwen2, SplitPattern::kLlama3}) {
      CAPTURE(text);
      CAPTURE(regex_of(pattern));
      REQUIRE(pieces_of_matcher(pattern, text) == pieces_of_regex(pattern, text));
    }
  }
}

TEST_CASE("PCRE2 and the table of characters differ only on recent additions") {
  int num_unsettled = 0;
  for (char32_t code = 0; code < 0x30000; ++code) {
    if (code < 0xD800 || code > 0xDFFF) {
      num_unsettled += is_settled(code) ? 0 : 1;
    }
  }
  CHECK(num_unsettled < 6000);  // Unicode 15 added 4,489 characters
}

TEST_CASE("worked examples of the three patterns") {
  using Pieces = std::vector<std::string>;
  CHECK(pieces_of_matcher(SplitPattern::kGpt2, "I'll  go 123\n\n x") ==
        Pieces{"I", "'ll", " ", " go", " 123", "\n\n", " x"});
  CHECK(pieces_of_matcher(SplitPattern::kQwen2, "I'LL go 123!!\n\n  x") ==
        Pieces{"I", "'LL", " go", " ", "1", "2", "3", "!!\n\n", " ", " x"});
  CHECK(pieces_of_matcher(SplitPattern::kLlama3, "12345 (a)") ==
        Pieces{"123", "45", " (", "a", ")"});
}

TEST_CASE("white space in a pattern is the White_Space property") {
  const Regex space(R"(\s)", "test");
  const Regex other(R"([^\s])", "test");
  const std::string vowel_separator = "\xE1\xA0\x8E";  // U+180E, a space to PCRE2 alone
  CHECK(space.find_all(vowel_separator).empty());
  CHECK(other.find_all(vowel_separator).size() == 1);
  CHECK(space.find_all("\xC2\x85\xE3\x80\x80").size() == 2);
  CHECK(spell_out_white_space(R"(\S\\s)").starts_with("[^"));
}

TEST_CASE("a pattern spelled like a known one is recognized") {
  CHECK(known_pattern(regex_of(SplitPattern::kQwen2)) == SplitPattern::kQwen2);
  CHECK(known_pattern(R"(\p{L}+)") == std::nullopt);
}

}  // namespace
}  // namespace tandem::text
