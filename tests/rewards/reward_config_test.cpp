// The --reward SPEC of the command line and the checks on a recipe's rewards.
#include <doctest/doctest.h>

#include "rewards/reward.h"
#include "rewards/reward_library.h"

namespace tandem::rewards::test {
namespace {

std::string spec_error(const std::string& spec) {
  return error_of<UserError>([&] { parse_reward_spec(spec); });
}

TEST_CASE("a spec names a built-in with options, whose commas may be part of a value") {
  const RewardConfig bare = parse_reward_spec("gsm8k");
  CHECK(bare.kind == "gsm8k");
  CHECK(bare.name == "gsm8k");
  CHECK(bare.options == "{}");
  const RewardConfig full = parse_reward_spec(
      "regex:pattern=a{1,2},b,name=ab,weight=0.5,timeout_ms=200,on_failure=-1,isolation=thread");
  CHECK(full.name == "ab");
  CHECK(full.options == R"({"pattern":"a{1,2},b"})");
  CHECK(full.weight == 0.5);
  CHECK(full.timeout_ms == 200);
  CHECK(full.on_failure == "-1");
  CHECK(full.isolation == "thread");
  CHECK(parse_reward_spec("length:max=100,buffer=20").options == R"({"buffer":20,"max":100})");
  CHECK(parse_reward_spec("exact_match:last_line=true").options == R"({"last_line":true})");
}

TEST_CASE("a spec names a library or a Python file, with or without function") {
  const TemporaryFolder folder;
  const std::string library = write_text(folder / "libbrief.so", "");
  const std::string python = write_text(folder / "r.py", "");
  CHECK(parse_reward_spec(library).name == "brief");
  CHECK(parse_reward_spec(library).kind == "library");
  CHECK(parse_reward_spec(library + ":terse").function == "terse");
  CHECK(parse_reward_spec(library + ":terse,scale=2").options == R"({"scale":2})");
  CHECK(parse_reward_spec(library + ":scale=2").function == "");
  const RewardConfig config = parse_reward_spec(python + ":accuracy");
  CHECK(config.kind == "python");
  CHECK(config.function == "accuracy");
  CHECK(config.name == "accuracy");
}

TEST_CASE("wrong specs and configs are refused with the remedy") {
  CHECK(contains(spec_error("mth"), "unknown reward kind mth; did you mean math?"));
  CHECK(contains(spec_error("gone.so"), "gone.so: no such file"));
  CHECK(contains(spec_error(""), "FILE.so[:name]"));
  CHECK(contains(spec_error("length:100"), "'100' is not key=value"));
  CHECK(contains(spec_error("math:weight=x"), "weight is 'x', not a number"));
  CHECK(contains(spec_error("math:on_failure=non"), "did you mean none?"));
  CHECK(contains(spec_error("math:isolation=fork"), "not process or thread"));
  CHECK(contains(spec_error("math:timeout_ms=0"), "timeout_ms is 0"));
  CHECK(contains(spec_error("math:weight=inf"), "not a number"));
  RewardConfig config;
  config.name = "x";
  const auto refusal = [](RewardConfig c) {
    return error_of<UserError>([&] { check_reward_config(c); });
  };
  CHECK(contains(refusal(config), "needs one of kind, library, file"));
  config.kind = "math";
  config.library = "a.so";
  CHECK(contains(refusal(config), "library and kind math do not go together"));
  config.library.clear();
  config.function = "f";
  CHECK(contains(refusal(config), "takes no function"));
}

TEST_CASE("options are strict: unknown keys, wrong types and wrong words") {
  const auto refusal = [](const std::string& spec) {
    return error_of<UserError>([&] { RewardSet rewards({parse_reward_spec(spec)}); });
  };
  CHECK(contains(refusal("exact_match:strip_punctation=true"),
                 "unknown option strip_punctation; did you mean strip_punctuation?"));
  CHECK(contains(refusal("exact_match:last_line=3"), "option last_line is 3, not true or false"));
  CHECK(contains(refusal("gsm8k:mode=strickt"), "did you mean strict?"));
  CHECK(contains(refusal("length:max=10"), "option buffer is required"));
  CHECK(contains(refusal("length:max=10,buffer=20"), "buffer is larger than max"));
  CHECK(contains(refusal("length:max=1.5,buffer=1"), "max is 1.5, not a whole number"));
  CHECK(contains(refusal("regex"), "option pattern is required"));
  CHECK(contains(refusal("regex:pattern=(a"), "at character 2"));
  CHECK(contains(refusal("math:strict=true"), "unknown option strict"));
}

TEST_CASE("two rewards of one name are refused") {
  CHECK(contains(error_of<UserError>([] {
                   RewardSet rewards({parse_reward_spec("math"), parse_reward_spec("math")});
                 }),
                 "two rewards are named math"));
}

TEST_CASE("the built-in kinds are those of the contract") {
  CHECK(builtin_kinds() ==
        std::vector<std::string>{"exact_match", "gsm8k", "length", "math", "regex"});
}

}  // namespace
}  // namespace tandem::rewards::test
