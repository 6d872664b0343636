#include "rollout/stop_rules.h"

#include <map>

#include <doctest/doctest.h>

namespace tandem::rollout {
namespace {

// Says a fixed piece for each id, as a byte-level decoder would.
class FakeSink final : public TextSink {
 public:
  explicit FakeSink(std::map<TokenId, std::string> pieces, std::string rest = {})
      : pieces_(std::move(pieces)), rest_(std::move(rest)) {}
  std::string push(TokenId id) override { return pieces_.at(id); }
  std::string finish() override { return rest_; }

 private:
  std::map<TokenId, std::string> pieces_;
  std::string rest_;
};

std::unique_ptr<TextSink> sink(std::map<TokenId, std::string> pieces, std::string rest = {}) {
  return std::make_unique<FakeSink>(std::move(pieces), std::move(rest));
}

TEST_CASE("any of several stop ids ends the sample and is named") {
  const SamplingParams params{.stop_ids = {7, 9}};
  StopRules rules(params, 10, nullptr);
  CHECK_FALSE(rules.push(1, 1));
  const auto stop = rules.push(9, 2);
  REQUIRE(stop);
  CHECK(stop->reason == FinishReason::kStop);
  CHECK(stop->id == 9);
}

TEST_CASE("with ignore_eos only the length ends the sample") {
  const SamplingParams params{.stop_ids = {7}, .ignore_eos = true};
  StopRules rules(params, 3, nullptr);
  CHECK_FALSE(rules.push(7, 1));
  CHECK_FALSE(rules.push(7, 2));
  CHECK(rules.push(7, 3)->reason == FinishReason::kLength);
}

TEST_CASE("a stop id at the last allowed token is a stop, not a cut") {
  const SamplingParams params{.stop_ids = {7}};
  StopRules rules(params, 2, nullptr);
  CHECK_FALSE(rules.push(1, 1));
  CHECK(rules.push(7, 2)->reason == FinishReason::kStop);
}

TEST_CASE("before min_new_tokens neither stop ids nor stop strings count") {
  const SamplingParams params{
      .max_new_tokens = 9, .min_new_tokens = 3, .stop_ids = {7}, .stop_strings = {"a"}};
  StopRules rules(params, 9, sink({{7, "a"}, {1, "a"}, {2, "b"}}));
  CHECK_FALSE(rules.push(7, 1));
  CHECK_FALSE(rules.push(1, 2));
  CHECK_FALSE(rules.push(2, 3));  // an "a" that came too early is not found later
  const auto stop = rules.push(1, 4);
  REQUIRE(stop);
  CHECK(stop->reason == FinishReason::kStopString);
  CHECK(rules.final_text() == "aab");
}

TEST_CASE("a stop string over two tokens is found, and the text ends before it") {
  const SamplingParams params{.stop_strings = {"\n\nQ"}};
  StopRules rules(params, 10, sink({{1, "4"}, {2, "\n"}, {3, "\nQ: "}}));
  CHECK_FALSE(rules.push(1, 1));
  CHECK_FALSE(rules.push(2, 2));
  const auto stop = rules.push(3, 3);
  REQUIRE(stop);
  CHECK(stop->reason == FinishReason::kStopString);
  CHECK(stop->string == "\n\nQ");
  CHECK(rules.final_text() == "4");
}

TEST_CASE("a stop string that is to be included stays in the text, over two tokens too") {
  const SamplingParams params{.stop_strings = {"\n\nQ"}, .include_stop = true};
  StopRules rules(params, 10, sink({{1, "4"}, {2, "\n"}, {3, "\nQ: "}}));
  CHECK_FALSE(rules.push(1, 1));
  CHECK_FALSE(rules.push(2, 2));
  REQUIRE(rules.push(3, 3));
  CHECK(rules.final_text() == "4\n\nQ");
}

TEST_CASE("a stop string over three tokens and one in the first token are found") {
  const SamplingParams params{.stop_strings = {"END"}};
  StopRules slow(params, 10, sink({{1, "E"}, {2, "N"}, {3, "D"}}));
  CHECK_FALSE(slow.push(1, 1));
  CHECK_FALSE(slow.push(2, 2));
  CHECK(slow.push(3, 3)->string == "END");
  CHECK(slow.final_text().empty());
  StopRules fast(params, 10, sink({{1, "xENDy"}}));
  CHECK(fast.push(1, 1)->string == "END");
  CHECK(fast.final_text() == "x");
}

TEST_CASE("of several stop strings the one that begins first wins, then the first of the list") {
  const std::vector<std::string> strings = {"cd", "bcd", "b"};
  StopStrings finder(strings);
  const auto match = finder.push("abcd", true);
  REQUIRE(match);
  CHECK(match->begin == 1);
  CHECK(match->string == 1);
}

TEST_CASE("a stop string may begin before the minimum length, but not end there") {
  const std::vector<std::string> strings = {"ab"};
  StopStrings finder(strings);
  CHECK_FALSE(finder.push("xabxa", false));
  const auto match = finder.push("b", true);
  REQUIRE(match);
  CHECK(match->begin == 4);
}

TEST_CASE("text that the decoder held back comes at the end, unless a stop string cut it") {
  const SamplingParams params{.stop_strings = {"!"}};
  StopRules open(params, 1, sink({{1, "a"}}, "?"));
  CHECK(open.push(1, 1)->reason == FinishReason::kLength);
  CHECK(open.final_text() == "a?");
  StopRules cut(params, 5, sink({{1, "a!"}}, "?"));
  CHECK(cut.push(1, 1)->reason == FinishReason::kStopString);
  CHECK(cut.final_text() == "a");
}

TEST_CASE("tokens that add no text yet neither stop nor hide a stop string") {
  const SamplingParams params{.stop_strings = {"\xE4\xBD\xA0"}};
  // three byte tokens of one character: the decoder gives it with the last of them
  StopRules rules(params, 9, sink({{1, ""}, {2, ""}, {3, "\xE4\xBD\xA0"}}));
  CHECK_FALSE(rules.push(1, 1));
  CHECK_FALSE(rules.push(2, 2));
  CHECK(rules.push(3, 3)->reason == FinishReason::kStopString);
}

}  // namespace
}  // namespace tandem::rollout
