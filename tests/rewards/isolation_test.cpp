// A reward that misbehaves costs the sample it misbehaves on, and nothing else.
#include <cstdio>

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/log.h"
#include "rewards/process/file_descriptor.h"
#include "rewards/reward.h"
#include "rewards/reward_library.h"

namespace tandem::rewards::test {
namespace {

// Each function fails in its own way on the completion "3" and scores its number otherwise.
constexpr const char* kMisbehaving = R"(
#include <tandem/reward.hpp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <unistd.h>
static double number(const tandem::Sample& s) { return std::atof(std::string(s.completion()).c_str()); }
static bool bad(const tandem::Sample& s) { return s.completion() == "3"; }
TANDEM_REWARD(fine) { return number(sample); }
TANDEM_REWARD(segfault) { if (bad(sample)) { std::raise(SIGSEGV); } return number(sample); }
TANDEM_REWARD(aborts) { if (bad(sample)) { std::abort(); } return number(sample); }
TANDEM_REWARD(exits) { if (bad(sample)) { std::exit(7); } return number(sample); }
TANDEM_REWARD(exits_well) { if (bad(sample)) { std::exit(0); } return number(sample); }
TANDEM_REWARD(alarms) { if (bad(sample)) { alarm(1); for (;;) { pause(); } } return number(sample); }
TANDEM_REWARD(hangs) { while (bad(sample)) { usleep(1000); } return number(sample); }
TANDEM_REWARD(closes) { if (bad(sample)) { for (int i = 3; i < 64; ++i) close(i); } return number(sample); }
TANDEM_REWARD(throws) { if (bad(sample)) { throw std::runtime_error("no digits"); } return number(sample); }
TANDEM_REWARD(throws_int) { if (bad(sample)) { throw 5; } return number(sample); }
TANDEM_REWARD(nan) { return bad(sample) ? std::nan("") : number(sample); }
TANDEM_REWARD(infinite) { return bad(sample) ? std::numeric_limits<double>::infinity() : number(sample); }
TANDEM_REWARD(silent) { if (bad(sample)) { return tandem::not_applicable; } return number(sample); }
TANDEM_REWARD(prints) { std::printf("to standard output\n"); return number(sample); }
TANDEM_REWARD_BATCH(batch) {
  std::vector<tandem::Outcome> all;
  for (const auto& sample : samples) { all.push_back(number(sample)); }
  return all;
}
TANDEM_REWARD_BATCH(batch_short) {
  std::vector<tandem::Outcome> all;
  for (const auto& sample : samples) { if (!bad(sample)) all.push_back(number(sample)); }
  return all;
}
TANDEM_REWARD_BATCH(batch_throws) {
  std::vector<tandem::Outcome> all;
  for (const auto& sample : samples) {
    if (bad(sample)) { throw std::runtime_error("batch with a 3"); }
    all.push_back(number(sample));
  }
  return all;
}
TANDEM_REWARD_BATCH(batch_crashes) {
  std::vector<tandem::Outcome> all;
  for (const auto& sample : samples) {
    if (bad(sample)) { std::raise(SIGKILL); }
    all.push_back(number(sample));
  }
  return all;
}
TANDEM_REWARD(counts_itself) { static int calls = 0; return ++calls; }
)";

// One library for all cases of this file.
const std::string& library() {
  static const TemporaryFolder folder;
  static const std::string path = build_library(folder.path(), "misbehaving", kMisbehaving);
  return path;
}

void check_only_third_failed(const std::vector<Score>& scores, const std::string& why) {
  for (std::size_t i = 0; i < scores.size(); ++i) {
    CAPTURE(i);
    if (i == 3) {
      CHECK_FALSE(scores[i].value.has_value());
      CHECK_MESSAGE(contains(scores[i].failure, why), scores[i].failure);
    } else {
      CHECK(scores[i].failure == "");
      CHECK(scores[i].value == static_cast<double>(i));
    }
  }
}

struct Case {
  const char* function;
  const char* why;
  std::int64_t restarts;
};

TEST_CASE("each way to misbehave costs its sample, is named, and restarts the worker if need be") {
  const Case cases[] = {
      {"segfault", "signal 11", 1},
      {"aborts", "signal 6", 1},
      {"exits", "exited with status 7", 1},
      {"exits_well", "exited with status 0", 1},
      {"alarms", "signal 14", 1},
      {"closes", "exited with status 1", 1},
      {"throws", "no digits", 0},
      {"throws_int", "not a std::exception", 0},
      {"nan", "returned nan", 0},
      {"infinite", "returned inf", 0},
      {"batch_short", "returned 0 scores for 1 samples", 0},
      {"batch_throws", "batch with a 3", 0},
      {"batch_crashes", "signal 9", 2},  // once as a batch, once alone
  };
  std::vector<RewardConfig> configs;
  for (const Case& c : cases) {
    configs.push_back(library_config(library(), c.function));
  }
  RewardSet rewards(configs);
  const auto samples = make_samples(6);
  const auto scores = rewards.score(samples, 1);
  REQUIRE(scores.size() == std::size(cases));
  for (std::size_t f = 0; f < scores.size(); ++f) {
    CAPTURE(cases[f].function);
    REQUIRE(scores[f].size() == samples.size());
    check_only_third_failed(scores[f], cases[f].why);
    CHECK(rewards.stats(f).restarts == cases[f].restarts);
    CHECK(rewards.stats(f).failures == 1);
    CHECK(rewards.stats(f).scored == 6);
  }
}

TEST_CASE("a hang past the deadline costs its sample, and the next step works") {
  RewardConfig config = library_config(library(), "hangs");
  config.timeout_ms = 1500;
  RewardSet rewards({config});
  const auto samples = make_samples(5);
  check_only_third_failed(rewards.score(samples, 1)[0], "no answer within 1500 ms");
  CHECK(rewards.stats(0).restarts == 1);
  check_only_third_failed(rewards.score(samples, 2)[0], "no answer within 1500 ms");
  CHECK(rewards.stats(0).restarts == 2);
  CHECK(rewards.stats(0).failures == 2);
}

TEST_CASE("a reward that does not apply has neither value nor failure") {
  RewardSet rewards({library_config(library(), "silent")});
  const auto scores = rewards.score(make_samples(5), 1)[0];
  CHECK_FALSE(scores[3].value.has_value());
  CHECK(scores[3].failure == "");
  CHECK(scores[4].value == 4.0);
}

TEST_CASE("on_failure: error names function, sample and message; a number is filled in") {
  const auto samples = make_samples(5);
  RewardConfig config = library_config(library(), "throws");
  config.on_failure = "error";
  RewardSet strict({config});
  const std::string message = error_of<Error>([&] { strict.score(samples, 1); });
  CHECK(contains(message, "reward throws, sample s3: no digits"));
  CHECK(strict.score(std::span(samples).first(2), 2)[0][1].value == 1.0);  // it goes on

  config.on_failure = "-0.5";
  RewardSet filling({config});
  const auto filled = filling.score(samples, 1)[0];
  CHECK(filled[3].value == -0.5);
  CHECK(filled[3].failure == "no digits");
  CHECK(filled[2].value == 2.0);

  config.on_failure = "drop_group";
  RewardSet dropping({config});
  const auto dropped = dropping.score(samples, 1)[0];
  CHECK_FALSE(dropped[3].value.has_value());
  CHECK(dropped[3].failure == "no digits");
}

TEST_CASE("500 samples pass through single and batch functions in order") {
  RewardSet rewards({library_config(library(), "fine"), library_config(library(), "batch")});
  const auto scores = rewards.score(make_samples(500), 1);
  for (std::size_t i = 0; i < 500; ++i) {
    CHECK(scores[0][i].value == static_cast<double>(i));
    CHECK(scores[1][i].value == static_cast<double>(i));
  }
}

TEST_CASE("a static of the library lives as long as its worker: it is loaded once") {
  RewardSet rewards({library_config(library(), "counts_itself")});
  CHECK(rewards.score(make_samples(3), 1)[0][2].value == 3.0);
  CHECK(rewards.score(make_samples(3), 2)[0][2].value == 6.0);
}

TEST_CASE("no samples, and no rewards, are fine") {
  RewardSet rewards({library_config(library(), "fine")});
  CHECK(rewards.score({}, 1).size() == 1);
  RewardSet none({});
  CHECK(none.score(make_samples(2), 1).empty());
}

TEST_CASE("a failing worker does not disturb those beside it") {
  RewardSet rewards({library_config(library(), "segfault"),
                     library_config(library(), "fine"),
                     library_config(library(), "exits")});
  for (std::int64_t step = 0; step < 3; ++step) {
    const auto scores = rewards.score(make_samples(5), step);
    check_only_third_failed(scores[0], "signal 11");
    CHECK(scores[1][3].value == 3.0);
    check_only_third_failed(scores[2], "status 7");
  }
  CHECK(rewards.stats(0).restarts == 3);
  CHECK(rewards.stats(1).restarts == 0);
}

TEST_CASE("what a reward prints goes to standard error; standard output is for results") {
  std::fflush(stdout);
  const FileDescriptor saved(::dup(STDOUT_FILENO));
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const FileDescriptor read_end(ends[0]);
  ::dup2(ends[1], STDOUT_FILENO);
  ::close(ends[1]);
  double value = -1;
  {
    RewardSet rewards({library_config(library(), "prints")});
    value = rewards.score(make_samples(2), 1)[0][1].value.value_or(-1);
  }
  ::dup2(saved.get(), STDOUT_FILENO);  // closes the last writing end
  char first = 0;
  CHECK(::read(read_end.get(), &first, 1) == 0);
  CHECK(value == 1.0);
}

TEST_CASE("failures, and a reward that says 0 to everything, are logged with a sample") {
  std::string log;
  set_log_sink([&log](LogLevel, const std::string& line) { log += line + "\n"; });
  RewardSet rewards({library_config(library(), "throws")});
  auto samples = make_samples(5);
  rewards.score(samples, 1);
  CHECK(contains(log, "reward throws: failed on 1 of 5 samples; first on sample s3: no digits"));
  for (RewardSample& sample : samples) {
    sample.completion = "not a number";
  }
  log.clear();
  rewards.score(samples, 2);
  rewards.score(samples, 3);
  const std::string all_zero = "0 for all 5 samples; the first completion is: not a number";
  CHECK(contains(log, all_zero));
  CHECK(log.find(all_zero) == log.rfind(all_zero));  // said once
  set_log_sink(nullptr);
}

TEST_CASE("isolation thread: exceptions and NaN cost their sample, values keep their order") {
  std::vector<RewardConfig> configs;
  for (const char* name : {"throws", "nan", "batch_throws", "fine"}) {
    configs.push_back(library_config(library(), name));
    configs.back().isolation = "thread";
  }
  RewardSet rewards(configs);
  const auto samples = make_samples(300);
  const auto scores = rewards.score(samples, 1);
  check_only_third_failed(scores[0], "no digits");
  check_only_third_failed(scores[1], "returned nan");
  check_only_third_failed(scores[2], "batch with a 3");
  CHECK(scores[3][299].value == 299.0);
}

}  // namespace
}  // namespace tandem::rewards::test
