#include <doctest/doctest.h>

#include "base/error.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;

SchedulerConfig small() {
  return test::small_scheduler(64, 3);
}

GroupRequest group(std::int64_t draw, std::int32_t num_samples = 3) {
  return test::small_group(draw, num_samples, 9);
}

void check_expected(FakeEngine& engine, std::int64_t draw) {
  for (std::int32_t sample = 0; sample < 3; ++sample) {
    CHECK(engine.is_as_expected(group(draw), sample));
  }
}

// One group runs, one waits, and one is added while the scheduler is paused.
void run_and_pause(FakeEngine& engine, PauseMode mode) {
  engine.scheduler.add(group(0));
  engine.scheduler.add(group(1));
  engine.step();
  engine.step();
  engine.scheduler.pause(mode);
  CHECK(engine.scheduler.is_paused());
  engine.scheduler.add(group(2));
}

TEST_CASE("pause, keep: nothing moves until resume, and the results are the same") {
  FakeEngine engine(small());
  run_and_pause(engine, PauseMode::kKeep);
  CHECK_FALSE(engine.scheduler.has_work());
  CHECK_FALSE(engine.scheduler.is_idle());
  CHECK(engine.step().empty());
  engine.scheduler.resume();
  engine.run();
  for (std::int64_t draw = 0; draw < 3; ++draw) {
    check_expected(engine, draw);
  }
}

TEST_CASE("pause, wait: what has started ends, also after it lost its blocks; the rest waits") {
  FakeEngine engine(small());
  run_and_pause(engine, PauseMode::kWait);
  engine.scheduler.preempt(0, 1);
  engine.run();
  check_expected(engine, 0);
  CHECK(engine.finished.size() == 3);
  CHECK(engine.scheduler.counters().waiting == 6);
  CHECK(engine.scheduler.blocks().num_free() == engine.scheduler.blocks().num_usable());
  engine.scheduler.resume();
  engine.run();
  check_expected(engine, 1);
  check_expected(engine, 2);
}

TEST_CASE("pause, abort: all end with what they have; what is added then waits") {
  FakeEngine engine(small());
  run_and_pause(engine, PauseMode::kAbort);
  engine.run();
  CHECK(engine.finished.size() == 6);
  CHECK(engine.finished.at({0, 2}).stop.reason == FinishReason::kAbort);
  CHECK(engine.finished.at({0, 2}).ids.size() == 2);
  CHECK(engine.finished.at({1, 0}).ids.empty());
  CHECK(engine.scheduler.counters().waiting == 3);
  engine.scheduler.resume();
  engine.run();
  check_expected(engine, 2);
}

TEST_CASE("pause, new weights, request, resume: the added request sees the new weights alone") {
  for (const bool reset : {false, true}) {
    FakeEngine engine(small());
    run_and_pause(engine, PauseMode::kKeep);
    if (reset) {  // as when the pages of the cache were given away meanwhile
      engine.scheduler.preempt_all();
      CHECK(engine.scheduler.reset_cache());
    }
    engine.scheduler.set_weight_version(4);
    engine.scheduler.add(group(3));
    engine.scheduler.resume();
    engine.run();
    check_expected(engine, 1);  // it had not started
    check_expected(engine, 2);
    check_expected(engine, 3);
    CHECK(engine.finished.at({0, 0}).versions == std::vector<WeightVersion>{0, 0, 4, 4, 4, 4});
    // After a reset the old tokens have keys of the new weights, so that the rest is what a
    // request with these tokens as its prompt would get.
    GroupRequest rest = group(0);
    const auto& ids = engine.finished.at({0, 0}).ids;
    rest.prompt.insert(rest.prompt.end(), ids.begin(), ids.begin() + 2);
    rest.params.max_new_tokens = 4;
    const bool same = engine.expected(rest, 0) == std::vector<TokenId>(ids.begin() + 2, ids.end());
    CHECK(same == reset);
  }
}

TEST_CASE("a pause in the middle of a step is refused") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));
  const StepPlan plan = engine.scheduler.schedule();
  CHECK_THROWS_AS(engine.scheduler.pause(PauseMode::kKeep), Error);
  CHECK_THROWS_AS(engine.scheduler.preempt_all(), Error);
  engine.scheduler.commit(plan, engine.draw(plan));
}

}  // namespace
}  // namespace tandem::rollout
