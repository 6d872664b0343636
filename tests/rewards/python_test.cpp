// Python rewards: the signatures of TRL and verl, and failures that carry Python's message.
#include <cstdlib>

#include <doctest/doctest.h>

#include "rewards/python_functions.h"
#include "rewards/reward.h"
#include "rewards/reward_library.h"

// Ends the test case, saying so, where there is no python3.
#define TANDEM_NEEDS_PYTHON()                                 \
  if (std::system("python3 -c pass > /dev/null 2>&1") != 0) { \
    MESSAGE("skipped: no python3");                           \
    return;                                                   \
  }

namespace tandem::rewards::test {
namespace {

class PythonFile {
 public:
  PythonFile() : path_(write_text(folder_ / "my_reward.py", kFunctions)) {}

  [[nodiscard]] RewardConfig config(const std::string& function) const {
    RewardConfig config;
    config.kind = "python";
    config.file = path_;
    config.function = function;
    config.timeout_ms = 60000;
    return config;
  }

  std::vector<Score> score(const RewardConfig& config,
                           const std::vector<RewardSample>& samples) const {
    RewardSet rewards({config});
    return rewards.score(samples, 7)[0];
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

TEST_CASE("plain, async, partial, class and instance functions score in order") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  std::vector<RewardConfig> configs;
  for (const char* name :
       {"number", "gathered", "half", "Callable", "instance", "nothing_applies", "some_apply"}) {
    configs.push_back(file.config(name));
  }
  RewardSet rewards(configs);
  const auto first = rewards.score(make_samples(5), 7);
  CHECK(first[0][4].value == 4.0);
  CHECK(first[1][3].value == 3.0);
  CHECK(first[2][3].value == 1.5);
  CHECK(first[3][0].value == 71.0);
  CHECK(first[4][0].value == 71.0);
  CHECK_FALSE(first[5][0].value.has_value());
  CHECK(first[5][0].failure == "");
  CHECK_FALSE(first[6][3].value.has_value());
  CHECK(first[6][4].value == 4.0);
  CHECK(rewards.score(make_samples(2), 8)[4][1].value == 82.0);  // the instance lives on
}

TEST_CASE("the arguments are TRL's, and only those that the function names") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  auto samples = make_samples(2);
  samples[0].columns_json = R"({"source": "a", "level": 3, "prompt": "ignored"})";
  samples[1].columns_json = R"({"source": "b"})";
  samples[1].messages = {{"user", "hi"}};
  const auto scores = file.score(file.config("everything"), samples);
  CHECK(scores[0].value == 7.0);
  CHECK(scores[0].extra.at("seen") == "count to 0/0/[0]/a/3");
  CHECK(scores[1].extra.at("seen") ==
        "[{'content': 'hi', 'role': 'user'}]/[{'role': 'assistant', 'content': '1'}]/[1]/b/None");
  CHECK(scores[0].metrics.at("count") == 2.0);
}

TEST_CASE("options become arguments, and unknown ones are refused") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  RewardConfig config = file.config("scaled");
  config.options = R"({"factor": 3})";
  CHECK(file.score(config, make_samples(3))[2].value == 6.0);
  config.options = R"({"facto": 3})";
  CHECK(contains(error_of<UserError>([&] { file.score(config, make_samples(1)); }),
                 "scaled takes no option facto"));
}

TEST_CASE("each way to fail costs its sample and says why") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  const std::pair<const char*, const char*> cases[] = {
      {"throws", "ValueError: cannot read this (my_reward.py:"},
      {"exits", "exited with status 4"},
      {"sys_exits", "exited with status 5"},
      {"crashes", "signal 11"},
      {"nan", "returned nan"},
      {"text_value", "returned str 'good', not a number or None"},
      {"short", "returned 0 scores for 1 samples"},
      {"compute_score", "KeyError: 'three'"},
  };
  std::vector<RewardConfig> configs;
  for (const auto& [function, why] : cases) {
    configs.push_back(file.config(function));
  }
  RewardSet rewards(configs);
  const auto scores = rewards.score(make_samples(5), 1);
  for (std::size_t f = 0; f < scores.size(); ++f) {
    CAPTURE(std::string(cases[f].first));
    CHECK_MESSAGE(contains(scores[f][3].failure, cases[f].second), scores[f][3].failure);
    CHECK_FALSE(scores[f][3].value.has_value());
    for (const std::size_t i : {0, 1, 2, 4}) {
      CHECK(scores[f][i].failure == "");
      CHECK(scores[f][i].value.has_value());
    }
    CHECK(rewards.stats(f).failures == 1);
  }
}

TEST_CASE("a hang costs its sample: the batch times out, then each sample is tried alone") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  RewardConfig config = file.config("hangs");
  config.timeout_ms = 2000;
  RewardSet rewards({config});
  const auto scores = rewards.score(make_samples(5), 1)[0];
  CHECK(scores[3].failure == "no answer within 2000 ms");
  CHECK(scores[4].value == 4.0);
  CHECK(rewards.stats(0).restarts == 2);
}

TEST_CASE("a function that returns no list, or lacks a column, fails by name on every sample") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  CHECK(contains(file.score(file.config("no_list"), make_samples(2))[1].failure, "TypeError"));
  CHECK(contains(file.score(file.config("missing_column"), make_samples(2))[1].failure,
                 "missing_column needs difficulty, which the data does not have"));
}

TEST_CASE("verl's compute_score is recognised, single and in batches") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  RewardConfig config = file.config("compute_score");
  config.options = R"({"bonus": 0.25})";
  auto samples = make_samples(3);
  samples[2].columns_json =
      R"({"data_source": "d", "extra_info": {"index": 9}, "reward_model": {"ground_truth": 2}})";
  const auto scores = file.score(config, samples);
  CHECK(scores[0].value == 1.25);
  CHECK(scores[2].value == 1.25);
  CHECK(scores[2].metrics.at("acc") == 1.0);
  CHECK(scores[2].metrics.at("index") == 9.0);
  CHECK(scores[2].extra.at("pred") == "2");
  CHECK(scores[2].extra.at("source") == "d");
  CHECK(file.score(file.config("batch_score"), make_samples(40))[39].value == 1.0);
}

TEST_CASE("odd bytes pass: NUL as it is, what is not UTF-8 replaced; large batches too") {
  TANDEM_NEEDS_PYTHON();
  const PythonFile file;
  RewardConfig config = file.config("everything");
  auto samples = make_samples(200);
  for (RewardSample& sample : samples) {
    sample.columns_json = R"({"source": "s", "level": 1})";
    sample.completion = std::string(50'000, 'z');
  }
  samples[0].completion = std::string("a\0b", 3);
  samples[1].completion = "\xff";
  samples[2].completion = "";
  const auto scores = file.score(config, samples);
  CHECK((scores[0].extra.at("seen") == std::string("count to 0/a\0b/[0]/s/1", 22)));
  CHECK(scores[1].extra.at("seen") == "count to 1/\xef\xbf\xbd/[1]/s/1");
  CHECK(scores[2].extra.at("seen") == "count to 2//[2]/s/1");
  CHECK(scores[199].value == 7.0);
}

TEST_CASE("files that do not load are refused by name, with Python's reason") {
  TANDEM_NEEDS_PYTHON();
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& content) {
    RewardConfig config;
    config.file = write_text(folder / "f.py", content);
    config.function = "f";
    return error_of<UserError>([&] { RewardSet rewards({config}); });
  };
  CHECK(contains(refusal(""), "f.py: LookupError: no function f (it has: none)"));
  CHECK(contains(refusal("def g(): pass\n"), "no function f (it has: g)"));
  CHECK(contains(refusal("def f(:\n"), "SyntaxError"));
  CHECK(contains(refusal(std::string("\x00\x01\xff", 3)), "f.py"));
  CHECK(contains(refusal("import tandem_no_such_module\n"), "ModuleNotFoundError"));
  CHECK(contains(refusal("f = 3\n"), "f is not callable"));
  CHECK(contains(refusal("import os\nos._exit(3)\n"), "f.py: exited with status 3"));
  RewardConfig config;
  config.file = (folder / "gone.py").string();
  CHECK(contains(error_of<UserError>([&] { RewardSet rewards({config}); }), "gone.py: no such"));
  config.file = write_text(folder / "f.py", "def f(completions): return []\n");
  config.isolation = "thread";
  CHECK(contains(error_of<UserError>([&] { RewardSet rewards({config}); }), "process only"));
}

TEST_CASE("without python3 on the path the machine is at fault, and the message says so") {
  const TemporaryFolder folder;
  const std::string path = std::getenv("PATH");
  RewardConfig config;
  config.file = write_text(folder / "f.py", "def f(completions): return []\n");
  config.function = "f";
  ::setenv("PATH", folder.path().c_str(), 1);
  const std::string message = error_of<MachineError>([&] { RewardSet rewards({config}); });
  ::setenv("PATH", path.c_str(), 1);
  CHECK(contains(message, "needs python3, which cannot be started: No such file"));
}

TEST_CASE("the example in Python scores boxes, and printing disturbs nothing") {
  TANDEM_NEEDS_PYTHON();
  RewardConfig config;
  config.file = "examples/format_reward.py";
  config.function = "format_reward";
  const PythonFile file;
  RewardSet rewards({config, file.config("prints")});
  auto samples = make_samples(2);
  samples[1].completion = "so \\boxed{4}";
  samples[1].messages = {{"user", "2+2"}};
  const auto scores = rewards.score(samples, 1);
  CHECK(scores[0][0].value == 0.0);
  CHECK(scores[0][1].value == 1.0);
  CHECK(scores[0][1].metrics.at("boxed_fraction") == 0.5);
  CHECK(scores[1][1].value == 1.0);
}

}  // namespace
}  // namespace tandem::rewards::test
