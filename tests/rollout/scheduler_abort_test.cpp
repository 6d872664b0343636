#include <doctest/doctest.h>

#include "base/error.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;

SchedulerConfig small() {
  return test::small_scheduler(16, 16);
}

GroupRequest group(std::int64_t draw, std::int32_t num_samples = 4) {
  return test::small_group(draw, num_samples, 22);
}

// Everything is given back, and each sample ended exactly once (FakeEngine checks "once").
void check_clean(FakeEngine& engine, std::size_t num_samples) {
  engine.run();
  engine.keep(engine.scheduler.take_finished());
  CHECK(engine.finished.size() == num_samples);
  CHECK(engine.scheduler.blocks().num_free() == engine.scheduler.blocks().num_usable());
  CHECK(engine.scheduler.counters().running == 0);
  CHECK(engine.scheduler.counters().waiting == 0);
  engine.scheduler.check_invariants();
}

TEST_CASE("a group is aborted before it was ever scheduled") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));
  CHECK(engine.scheduler.abort(0));
  CHECK_FALSE(engine.scheduler.abort(0));
  CHECK(engine.scheduler.has_work());  // what ended is still to be taken
  check_clean(engine, 4);
  CHECK(engine.finished.at({0, 3}).stop.reason == FinishReason::kAbort);
  CHECK(engine.finished.at({0, 3}).ids.empty());
  CHECK(engine.scheduler.counters().aborts == 4);
}

TEST_CASE("a group is aborted in the middle of its prompt") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));
  engine.scheduler.add(group(1));
  engine.step();
  CHECK(engine.scheduler.abort(0));
  check_clean(engine, 8);
  CHECK(engine.finished.at({1, 0}).ids == engine.expected(group(1), 0));
}

TEST_CASE("a running group is aborted with what its samples have, none is left behind") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0, 8));
  for (int i = 0; i < 4; ++i) {
    engine.step();
  }
  CHECK(engine.scheduler.abort(0));
  engine.scheduler.check_invariants();
  CHECK(engine.scheduler.blocks().num_free() == engine.scheduler.blocks().num_usable());
  check_clean(engine, 8);
  CHECK(engine.finished.at({0, 7}).ids.size() == 3);
  CHECK(engine.finished.at({0, 7}).logprobs.size() == 3);
}

TEST_CASE("one sample of a group is aborted, as prompt or later, and the others go on") {
  for (const int num_steps : {0, 1, 2, 3}) {
    FakeEngine engine(small());
    engine.scheduler.add(group(0));
    for (int i = 0; i < num_steps; ++i) {
      engine.step();
    }
    CHECK(engine.scheduler.abort(0, 1));
    CHECK_FALSE(engine.scheduler.abort(0, 1));
    CHECK_FALSE(engine.scheduler.abort(0, 4));
    engine.scheduler.check_invariants();
    check_clean(engine, 4);
    CHECK(engine.finished.at({0, 1}).stop.reason == FinishReason::kAbort);
    for (const std::int32_t sample : {0, 2, 3}) {
      CHECK(engine.finished.at({0, sample}).ids == engine.expected(group(0), sample));
    }
  }
}

TEST_CASE("an abort during a step takes effect at its end") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));
  engine.step();
  const StepPlan plan = engine.scheduler.schedule();  // the prompt's last chunk
  CHECK(engine.scheduler.abort(0));
  engine.keep(engine.scheduler.commit(plan, engine.draw(plan)));
  check_clean(engine, 4);
  CHECK(engine.finished.at({0, 0}).stop.reason == FinishReason::kAbort);
  CHECK(engine.finished.at({0, 0}).ids.size() == 1);
}

TEST_CASE("a sample that ends by itself in the step of its abort stays as it ended") {
  FakeEngine engine(small());
  GroupRequest request = group(0, 1);
  request.params.max_new_tokens = 1;
  engine.scheduler.add(request);
  engine.step();
  const StepPlan plan = engine.scheduler.schedule();
  CHECK(engine.scheduler.abort(0, 0));
  engine.keep(engine.scheduler.commit(plan, engine.draw(plan)));
  CHECK_FALSE(engine.scheduler.abort(0, 0));  // as from the callback of the last token
  check_clean(engine, 1);
  CHECK(engine.finished.at({0, 0}).stop.reason == FinishReason::kLength);
}

TEST_CASE("a sample is aborted while it waits to be computed again") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));
  for (int i = 0; i < 3; ++i) {
    engine.step();
  }
  CHECK(engine.scheduler.preempt(0, 2));
  CHECK(engine.scheduler.abort(0, 2));
  check_clean(engine, 4);
  CHECK(engine.finished.at({0, 2}).ids.size() == 2);
  CHECK(engine.finished.at({0, 2}).stop.reason == FinishReason::kAbort);
}

TEST_CASE("a fork that is aborted before its copy was made gives both blocks back") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0));  // 22 tokens: two in the last block
  engine.step();
  engine.step();
  CHECK(engine.scheduler.counters().cow_copies == 3);
  CHECK(engine.scheduler.abort(0, 0));  // the one that took the prompt's own blocks
  CHECK(engine.scheduler.abort(0, 3));
  engine.scheduler.check_invariants();
  check_clean(engine, 4);
  for (const std::int32_t sample : {1, 2}) {
    CHECK(engine.finished.at({0, sample}).ids == engine.expected(group(0), sample));
  }
}

}  // namespace
}  // namespace tandem::rollout
