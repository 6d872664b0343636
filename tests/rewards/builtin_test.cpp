// The built-in rewards but math.
#include "rewards/builtin/builtin.h"

#include <fstream>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "rewards/reward_library.h"
#include "support/shared_data.h"

namespace tandem::rewards::test {
namespace {

RewardSample sample_of(const std::string& completion, const std::string& truth) {
  RewardSample sample;
  sample.completion = completion;
  sample.ground_truth = truth;
  return sample;
}

// The score of one sample, in this process.
Score score_of(const std::string& spec, const RewardSample& sample) {
  return make_builtin(parse_reward_spec(spec))->score({&sample, 1}, 1, 1000)[0];
}

double value_of(const std::string& spec, const std::string& completion, const std::string& truth) {
  return score_of(spec, sample_of(completion, truth)).value.value();
}

TEST_CASE("exact_match trims, and may look at the last line and past punctuation") {
  CHECK(value_of("exact_match", " 42\n", "42") == 1.0);
  CHECK(value_of("exact_match", "42.", "42") == 0.0);
  CHECK(value_of("exact_match:strip_punctuation=true", "42.", "42") == 1.0);
  CHECK(value_of("exact_match:strip_punctuation=true", "\"Paris!\"", "Paris") == 1.0);
  CHECK(value_of("exact_match", "so\n42", "42") == 0.0);
  CHECK(value_of("exact_match:last_line=true", "so\n 42 \n\n", "42") == 1.0);
  CHECK(value_of("exact_match", "", "42") == 0.0);
  CHECK(value_of("exact_match", "Paris", "paris") == 0.0);
  CHECK_FALSE(score_of("exact_match", sample_of("42", "")).value.has_value());
}

TEST_CASE("regex searches, also in bytes that are not UTF-8, and never runs away") {
  CHECK(value_of("regex:pattern=\\d+", "a 12", "") == 1.0);
  CHECK(value_of("regex:pattern=^\\d+$", "a 12", "") == 0.0);
  CHECK(value_of("regex:pattern=b", "\xff\xfe b", "") == 1.0);
  CHECK(value_of("regex:pattern=b", std::string("a\0b", 3), "") == 1.0);
  CHECK(value_of("regex:pattern=42", "142", "") == 1.0);  // a number on the command line is text
  const std::string message = error_of<Error>(
      [] { value_of("regex:pattern=^(a+)+(a+)+$", std::string(64, 'a') + "b", ""); });
  CHECK(contains(message, "limit"));
}

TEST_CASE("length is the soft overlong penalty") {
  const auto penalty = [](std::size_t length) {
    RewardSample sample;
    sample.completion_ids.assign(length, 1);
    return score_of("length:max=20480,buffer=4096", sample).value.value();
  };
  CHECK(penalty(0) == 0.0);
  CHECK(penalty(16384) == 0.0);
  CHECK(penalty(18432) == -0.5);
  CHECK(penalty(20480) == -1.0);
  CHECK(penalty(24576) == -1.0);
}

TEST_CASE("length agrees with the recorded cases of TRL") {
  TANDEM_NEEDS_SHARED("golden/rl/trl_cases.json");
  std::ifstream file(tandem::test::shared_data() / "golden/rl/trl_cases.json");
  const auto golden = nlohmann::json::parse(file).at("soft_overlong_punishment");
  for (const auto& [length, expected] :
       golden.at("cases").get<std::vector<std::pair<int, double>>>()) {
    RewardSample sample;
    sample.completion_ids.assign(static_cast<std::size_t>(length), 1);
    const std::string spec = fmt::format("length:max={},buffer={}",
                                         golden.at("max_completion_len").get<int>(),
                                         golden.at("soft_punish_cache").get<int>());
    CHECK(score_of(spec, sample).value == expected);
  }
}

TEST_CASE("gsm8k strict is verl's, traps included") {
  const auto strict = [](const std::string& completion, const std::string& truth) {
    const double value = value_of("gsm8k:mode=strict", completion, truth);
    CHECK(value_of("gsm8k:mode=verl_strict", completion, truth) == value);
    return value;
  };
  CHECK(strict("so #### 72", "72") == 1.0);
  CHECK(strict("so #### 72.", "72") == 0.0);      // trap 1: "72." is not "72"
  CHECK(strict("so #### $72", "72") == 0.0);      // trap 2: no number right after the mark
  CHECK(strict("so ####72", "72") == 0.0);        // trap 3: the blank is part of the mark
  CHECK(strict("so #### 72.00", "72") == 0.0);    // trap 4
  CHECK(strict("so #### 1,234", "1234") == 1.0);  // trap 5: commas go
  CHECK(strict("so #### 18.0", "18") == 0.0);     // trap 6
  CHECK(strict("#### 1 and #### 2", "2") == 1.0);
  CHECK(strict("#### 1" + std::string(300, ' '), "1") == 0.0);  // beyond the last 300 characters
  CHECK(strict("72", "72") == 0.0);
  CHECK(strict("", "72") == 0.0);
}

TEST_CASE("gsm8k flexible takes the last number") {
  CHECK(value_of("gsm8k:mode=flexible", "first 5, then 72 .", "72") == 1.0);
  CHECK(value_of("gsm8k:mode=flexible", "it is 72.", "72") == 0.0);  // "72." as verl reads it
  CHECK(value_of("gsm8k:mode=flexible", "none", "72") == 0.0);
}

TEST_CASE("gsm8k numeric compares decimals and forgives the traps") {
  for (const char* completion : {"#### 72",
                                 "#### 72.",
                                 "#### $72",
                                 "####72",
                                 "#### 72.00",
                                 "#### 72 dollars",
                                 "it is 72.",
                                 "It costs $72",
                                 "#### 72,",
                                 "#### 072"}) {
    CAPTURE(completion);
    CHECK(value_of("gsm8k", completion, "72") == 1.0);
  }
  CHECK(value_of("gsm8k", "#### 1,234", "1234") == 1.0);
  CHECK(value_of("gsm8k", "#### 18.0", "18") == 1.0);
  CHECK(value_of("gsm8k", "#### -5", "-5") == 1.0);
  CHECK(value_of("gsm8k", "#### 5", "-5") == 0.0);
  CHECK(value_of("gsm8k", "#### 72.5", "72") == 0.0);
  CHECK(value_of("gsm8k", "#### 7 2", "72") == 0.0);
  CHECK(value_of("gsm8k", "#### 12345678901234567890", "12345678901234567891") == 0.0);
  CHECK(value_of("gsm8k", "7#### what", "7") == 0.0);
  CHECK(value_of("gsm8k", "", "72") == 0.0);
  CHECK_FALSE(score_of("gsm8k", sample_of("72", "")).value.has_value());
}

TEST_CASE("every gold answer of gsm8k scores 1 in numeric and strict mode") {
  TANDEM_NEEDS_SHARED("gsm8k/train.jsonl");
  const auto numeric = make_builtin(parse_reward_spec("gsm8k"));
  const auto strict = make_builtin(parse_reward_spec("gsm8k:mode=strict"));
  std::int64_t rows = 0;
  std::int64_t right = 0;
  for (const char* name : {"gsm8k/train.jsonl", "gsm8k/test.jsonl"}) {
    std::ifstream file(tandem::test::shared_data() / name);
    for (std::string line; std::getline(file, line); ++rows) {
      const auto answer = nlohmann::json::parse(line).at("answer").get<std::string>();
      std::string truth = answer.substr(answer.rfind("#### ") + 5);
      std::erase(truth, ',');
      const RewardSample bare = sample_of(answer, truth);
      const RewardSample whole = sample_of(answer, answer);
      const bool all = numeric->score({&bare, 1}, 1, 1)[0].value == 1.0 &&
                       strict->score({&bare, 1}, 1, 1)[0].value == 1.0 &&
                       numeric->score({&whole, 1}, 1, 1)[0].value == 1.0 &&
                       strict->score({&whole, 1}, 1, 1)[0].value == 1.0;
      right += all ? 1 : 0;
    }
  }
  MESSAGE("gsm8k golds: " << right << " of " << rows);
  CHECK(rows == 8792);
  CHECK(right == rows);
}

}  // namespace
}  // namespace tandem::rewards::test
