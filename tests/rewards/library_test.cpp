// Shared objects: the example as a user builds it, what a sample carries, and files that are wrong.
#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

#include "base/atomic_file.h"
#include "rewards/reward.h"
#include "rewards/reward_library.h"

namespace tandem::rewards::test {
namespace {

std::string refusal_of(const RewardConfig& config) {
  return error_of<UserError>([&] { RewardSet rewards({config}); });
}

TEST_CASE("the example builds by a plain g++ and scores by length") {
  const TemporaryFolder folder;
  const std::string library = (folder / "libbrevity.so").string();
  const std::string command = "g++ -shared -fPIC -I include examples/brevity.cpp -o " + library;
  REQUIRE(std::system(command.c_str()) == 0);
  RewardConfig config;
  config.library = library;
  for (const char* isolation : {"process", "thread"}) {
    config.isolation = isolation;
    RewardSet rewards({config});
    CHECK(rewards.configs()[0].name == "brevity");
    auto samples = make_samples(3);
    samples[0].completion_ids.clear();
    samples[1].completion_ids.assign(20, 7);
    samples[2].completion_ids.assign(80, 7);
    const auto scores = rewards.score(samples, 1)[0];
    CHECK(scores[0].value == 1.0);
    CHECK(scores[1].value == 1.0);
    CHECK(scores[2].value == 0.25);
  }
}

constexpr const char* kCurious = R"(
#include <tandem/reward.hpp>
#include <stdexcept>
// Sums up all that it sees of a sample, so that the test sees it too.
TANDEM_REWARD(curious, tandem::not_thread_safe) {
  std::string all;
  all += std::string(sample.id()) + "|" + std::string(sample.prompt()) + "|";
  for (const auto& message : sample.messages()) {
    all += std::string(message.role) + ":" + std::string(message.content) + ";";
  }
  all += "|" + std::string(sample.ground_truth()) + "|" + std::string(sample.finish_reason());
  all += "|" + std::to_string(sample.completion_ids().size());
  all += "|" + sample.columns().string("source").value_or("none");
  all += "|" + sample.columns().string("nested").value_or("none");
  sample.log_extra("seen", all);
  sample.log_extra("completion", std::string(sample.completion()));
  sample.log_metric("difficulty", sample.columns().number("difficulty").value_or(-1));
  return sample.options().number("scale").value_or(1) * static_cast<double>(sample.step());
}
TANDEM_REWARD(other) { return sample.completion().size(); }
)";

TEST_CASE("a sample carries text, messages, ids, truth, columns, options and step") {
  const TemporaryFolder folder;
  RewardConfig config = library_config(build_library(folder.path(), "c", kCurious), "curious");
  config.options = R"({"scale": 0.5})";
  RewardSample sample;
  sample.id = "row 7";
  sample.prompt_text = "Q?";
  sample.messages = {{"system", "be brief"}, {"user", "Q?"}};
  sample.completion = "A";
  sample.completion_ids = {1, 2, 3};
  sample.ground_truth = "B";
  sample.finish_reason = "length";
  sample.columns_json =
      R"({"nested": {"source": "no", "a": [1, "}"]}, "source": "g\u00e4\"s\ud83d\ude00", "difficulty": 2.5})";
  RewardSet rewards({config});
  const Score score = rewards.score({&sample, 1}, 6)[0][0];
  CHECK(score.value == 3.0);
  CHECK(score.extra.at("seen") ==
        "row 7|Q?|system:be brief;user:Q?;|B|length|3|g\xc3\xa4\"s\xf0\x9f\x98\x80|"
        R"({"source": "no", "a": [1, "}"]})");
  CHECK(score.metrics.at("difficulty") == 2.5);
}

TEST_CASE("NUL, bytes that are not UTF-8, empty and huge completions arrive unchanged") {
  const TemporaryFolder folder;
  RewardSet rewards({library_config(build_library(folder.path(), "c", kCurious), "curious")});
  auto samples = make_samples(4);
  samples[0].completion = std::string("a\0b", 3);
  samples[1].completion = "\xff\xfe\x80";
  samples[2].completion = "";
  samples[3].completion = std::string(40u << 20, 'x');
  const auto scores = rewards.score(samples, 1)[0];
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(scores[i].failure == "");
    CHECK((scores[i].extra.at("completion") == samples[i].completion));
  }
}

TEST_CASE("files that are no reward library are refused by name before anything runs") {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::string& name, const std::string& content) {
    return refusal_of(library_config(write_text(folder / name, content), "x"));
  };
  CHECK(contains(refusal_of(library_config((folder / "gone.so").string(), "x")),
                 "gone.so: no such file"));
  CHECK(contains(refusal_of(library_config(folder.path().string(), "x")), "is not a file"));
  CHECK(contains(refusal("nonsense.so", "not an object"), "nonsense.so: cannot be loaded"));
  CHECK(contains(refusal("empty.so", ""), "empty.so: cannot be loaded"));
  const std::string whole = read_file(build_library(folder.path(), "c", kCurious));
  for (const std::size_t size : {whole.size() / 4, whole.size() / 2, whole.size() - 100}) {
    CAPTURE(size);
    const std::string message = refusal("truncated.so", whole.substr(0, size));
    CHECK(contains(message, "truncated.so"));
  }
  const std::string bare = build_library(folder.path(), "bare", "int nothing() { return 0; }\n");
  CHECK(contains(refusal_of(library_config(bare, "x")), "bare.so: has no symbol tandem_rewards"));
}

TEST_CASE("another ABI version, another function and refused options are told apart") {
  const TemporaryFolder folder;
  const std::string future = build_library(folder.path(), "future", R"(
#include <tandem/reward.h>
extern "C" const tandem_reward_library* tandem_rewards() {
  static const tandem_reward_library library = {TANDEM_REWARD_ABI + 1, 0, nullptr};
  return &library;
})");
  CHECK(contains(refusal_of(library_config(future, "x")),
                 "future.so: has reward ABI 2, this program has 1"));
  const std::string two = build_library(folder.path(), "two", kCurious);
  CHECK(contains(refusal_of(library_config(two, "curius")),
                 "two.so: has no reward curius; did you mean curious? (it has: curious, other)"));
}

// Counts what happens to it in a file, through the C ABI alone.
constexpr const char* kLifeCycle = R"(
#include <tandem/reward.h>
#include <cstdio>
#include <cstdlib>
#include <string>
static void note(const char* event) {
  std::FILE* file = std::fopen(std::getenv("TANDEM_TEST_EVENTS"), "a");
  std::fputs(event, file);
  std::fclose(file);
}
static int init(tandem_text options, void** state, tandem_text* error) {
  note("i");
  if (std::string(options.data, options.size) == "{\"no\":1}") {
    *error = {"no is not taken", 15};
    return 1;
  }
  *state = new int(0);
  return 0;
}
static int score(void*, const tandem_reward_batch* batch, tandem_reward_results* out) {
  auto* results = new tandem_reward_result[batch->num_samples]();
  for (size_t i = 0; i < batch->num_samples; ++i) {
    results[i].value = static_cast<double>(batch->deadline_ms);
    if (batch->samples[i].completion.size == 0) std::abort();
  }
  *out = {results, batch->num_samples, {}, results};
  return 0;
}
static void free_results(void*, tandem_reward_results* results) {
  note("f");
  delete[] static_cast<tandem_reward_result*>(results->owner);
}
static void destroy(void* state) { note("d"); delete static_cast<int*>(state); }
static const tandem_reward_function function = {
    "counted", TANDEM_REWARD_BATCHED, init, score, free_results, destroy};
static const tandem_reward_function* const functions[] = {&function};
extern "C" const tandem_reward_library* tandem_rewards() {
  static const tandem_reward_library library = {TANDEM_REWARD_ABI, 1, functions};
  return &library;
})";

TEST_CASE("init and destroy run once a worker, results are freed, deadlines are told") {
  const TemporaryFolder folder;
  const std::string events = (folder / "events").string();
  ::setenv("TANDEM_TEST_EVENTS", events.c_str(), 1);
  RewardConfig config = library_config(build_library(folder.path(), "life", kLifeCycle), "counted");
  config.timeout_ms = 15000;
  {
    RewardSet rewards({config});
    CHECK(rewards.score(make_samples(4), 1)[0][3].value == 15000.0);
    rewards.score(make_samples(4), 2);
    auto bad = make_samples(2);
    bad[0].completion.clear();
    CHECK(rewards.score(bad, 3)[0][1].value == 15000.0);
    CHECK(rewards.stats(0).restarts == 2);
  }
  // Two calls; a crash as a batch, a restart, a crash alone, a restart, one call; the end.
  CHECK(read_file(events) == "iffiifd");
  config.options = R"({"no":1})";
  CHECK(contains(refusal_of(config), "life.so: refused its options: no is not taken"));
}

TEST_CASE("a library that crashes while it is loaded is refused, in thread isolation too") {
  const TemporaryFolder folder;
  RewardConfig config = library_config(
      build_library(folder.path(),
                    "mine",
                    "#include <csignal>\nstatic const int crash = std::raise(SIGSEGV);\n"
                    "int used() { return crash; }\n"),
      "x");
  for (const char* isolation : {"process", "thread"}) {
    config.isolation = isolation;
    CHECK(contains(refusal_of(config), "mine.so: crashed with signal 11"));
  }
}

TEST_CASE("the C header is C") {
  const TemporaryFolder folder;
  const std::string file = write_text(folder / "a.c", "#include <tandem/reward.h>\nint a;\n");
  const std::string command =
      "gcc -std=c99 -Wall -Wextra -Wpedantic -Werror -I include -c -o /dev/null " + file;
  CHECK(std::system(command.c_str()) == 0);
}

}  // namespace
}  // namespace tandem::rewards::test
