// Sequences that lose their blocks: who, when, and that nobody can tell from the result.
#include <algorithm>

#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;
using test::make_prompt;

SchedulerConfig small(std::int32_t num_blocks) {
  return {.blocks = {.num_blocks = num_blocks, .block_size = 4},
          .max_batched_tokens = 64,
          .max_sequences = 16,
          .check_each_step = true};
}

GroupRequest request(std::int64_t draw,
                     std::int64_t prompt_length,
                     std::int64_t num_tokens,
                     std::int32_t num_samples = 1) {
  GroupRequest request{.draw = draw,
                       .num_samples = num_samples,
                       .prompt = make_prompt(prompt_length, static_cast<TokenId>(draw))};
  request.params.max_new_tokens = num_tokens;
  return request;
}

// The draws that have rows in a step.
std::vector<std::int64_t> draws_of(const StepPlan& plan) {
  std::vector<std::int64_t> draws;
  for (const SequenceView& sequence : plan.sequences) {
    draws.push_back(sequence.draw);
  }
  return draws;
}

void check_expected(FakeEngine& engine, std::span<const GroupRequest> requests) {
  for (const GroupRequest& wanted : requests) {
    for (std::int32_t sample = 0; sample < wanted.num_samples; ++sample) {
      CHECK(engine.is_as_expected(wanted, sample));
    }
  }
}

void check_clean(const FakeEngine& engine) {
  CHECK(engine.scheduler.is_idle());
  CHECK(engine.scheduler.blocks().num_free() == engine.scheduler.blocks().num_usable());
}

TEST_CASE("without a block the last that runs gives up its own, and the first runs on to its end") {
  FakeEngine engine(small(11));  // 10 blocks; each request grows from 2 to 6
  std::vector<GroupRequest> requests;
  for (std::int64_t draw = 0; draw < 3; ++draw) {
    requests.push_back(request(draw, 7, 16));
    engine.scheduler.add(requests.back());
  }
  std::vector<std::int64_t> ended;
  while (engine.scheduler.has_work()) {
    const auto draws = draws_of(engine.step());
    CHECK(std::ranges::find(draws, static_cast<std::int64_t>(ended.size())) != draws.end());
    for (std::int64_t draw = 0; draw < 3; ++draw) {
      if (engine.finished.contains({draw, 0}) && std::ranges::find(ended, draw) == ended.end()) {
        ended.push_back(draw);
      }
    }
  }
  CHECK(ended == std::vector<std::int64_t>{0, 1, 2});
  CHECK(engine.scheduler.counters().preemptions > 0);
  CHECK(engine.scheduler.counters().tokens_recomputed > 0);
  check_expected(engine, requests);
  check_clean(engine);
}

TEST_CASE("the victim is of the lowest priority, then the latest, whoever came first") {
  FakeEngine engine(small(9));
  std::vector<GroupRequest> requests = {request(0, 7, 12), request(1, 7, 12), request(2, 7, 12)};
  requests[0].priority = 1;
  requests[1].priority = -1;
  for (const GroupRequest& wanted : requests) {
    engine.scheduler.add(wanted);
  }
  CHECK(draws_of(engine.step()) == std::vector<std::int64_t>{1, 2, 0});
  std::vector<std::int64_t> draws = {1, 2, 0};
  while (draws.size() == 3) {
    draws = draws_of(engine.step());
  }
  CHECK(draws == std::vector<std::int64_t>{1, 2});
  engine.run();
  check_expected(engine, requests);
}

TEST_CASE("requests of a higher priority start before others that wait longer") {
  SchedulerConfig config = small(64);
  config.max_sequences = 1;
  FakeEngine engine(config);
  for (const std::int32_t priority : {3, 0, 3, -2}) {
    static std::int64_t draw = 0;
    GroupRequest wanted = request(draw++, 5, 2);
    wanted.priority = priority;
    engine.scheduler.add(wanted);
  }
  std::vector<std::int64_t> order;
  while (engine.scheduler.has_work()) {
    const StepPlan plan = engine.step();
    if (plan.positions.front() == 0) {
      order.push_back(plan.sequences.front().draw);
    }
  }
  CHECK(order == std::vector<std::int64_t>{3, 1, 0, 2});
}

TEST_CASE("recomputation at every step, of all or of one, changes no id and no log-probability") {
  for (const bool all : {true, false}) {
    for (const std::int64_t chunk : {0, 5}) {
      SchedulerConfig config = small(64);
      config.max_prompt_chunk = chunk;
      FakeEngine engine(config);
      std::vector<GroupRequest> requests = {request(0, 11, 9, 3), request(1, 16, 9, 2)};
      requests[1].params.top_k = 3;
      for (const GroupRequest& wanted : requests) {
        engine.scheduler.add(wanted);
      }
      for (int step = 0; engine.scheduler.has_work(); ++step) {
        REQUIRE(step < 500);
        engine.step();
        if (!all) {
          engine.scheduler.preempt(step % 2, step % 3);
        } else if (chunk == 0 || step % 4 == 3) {  // a chunk may be all that a step computes
          engine.scheduler.preempt_all();
        }
      }
      CHECK(engine.scheduler.counters().preemptions >= 5);
      check_expected(engine, requests);
      check_clean(engine);
    }
  }
}

TEST_CASE("samples that find no block for their copy are computed again") {
  FakeEngine engine(small(6));  // the prompt takes 3 of 5 blocks, each sample wants 3 of its own
  const GroupRequest wanted = request(0, 10, 6, 6);
  engine.scheduler.add(wanted);
  engine.step();
  CHECK(engine.scheduler.counters().forks == 2);
  CHECK(engine.scheduler.counters().running == 3);
  CHECK(engine.scheduler.counters().waiting == 3);
  engine.run();
  check_expected(engine, std::span(&wanted, 1));
  check_clean(engine);
}

TEST_CASE("three requests of six tenths of the pool end, one after the other or preempted") {
  for (const std::int64_t prompt_length : {40, 12, 2}) {
    FakeEngine engine(small(21));
    std::vector<GroupRequest> requests;
    for (std::int64_t draw = 0; draw < 3; ++draw) {
      requests.push_back(request(draw, prompt_length, 49 - prompt_length));  // 12 of 20 blocks
      engine.scheduler.add(requests.back());
    }
    for (int step = 0; engine.scheduler.has_work(); ++step) {
      REQUIRE(step < 1000);
      engine.step();
    }
    CHECK((prompt_length != 40) == (engine.scheduler.counters().preemptions > 0));
    check_expected(engine, requests);
    check_clean(engine);
  }
}

TEST_CASE("nobody is admitted in a step in which somebody lost its blocks") {
  FakeEngine engine(small(11));
  for (std::int64_t draw = 0; draw < 3; ++draw) {
    engine.scheduler.add(request(draw, 7, 16));
  }
  engine.scheduler.add(request(9, 1, 1));
  std::int64_t before = 0;
  while (engine.scheduler.has_work()) {
    const std::int64_t waiting = engine.scheduler.counters().waiting;
    engine.step();
    const std::int64_t now = engine.scheduler.counters().preemptions;
    CHECK((now == before || engine.scheduler.counters().waiting >= waiting));
    before = now;
  }
  CHECK(before > 0);
}

TEST_CASE("a victim before or behind the place of the loop makes nobody miss the step") {
  FakeEngine engine(small(14));
  std::vector<GroupRequest> requests;
  for (std::int64_t draw = 0; draw < 6; ++draw) {
    requests.push_back(request(draw, 3, 12));
    engine.scheduler.add(requests.back());
  }
  while (engine.scheduler.has_work()) {
    const StepPlan plan = engine.scheduler.schedule();
    const auto drawn = engine.draw(plan);
    // Whoever runs is decoded or computes rows again: no sequence holds blocks and has no rows.
    CHECK(static_cast<std::int64_t>(plan.sequences.size()) == engine.scheduler.counters().running);
    engine.keep(engine.scheduler.commit(plan, drawn));
  }
  CHECK(engine.scheduler.counters().preemptions > 0);
  check_expected(engine, requests);
}

TEST_CASE("what lost its blocks comes back in order, before what was added later") {
  FakeEngine engine(small(64));
  for (std::int64_t draw = 0; draw < 4; ++draw) {
    engine.scheduler.add(request(draw, 6, 8));
  }
  engine.step();
  engine.step();
  engine.scheduler.add(request(9, 6, 8));
  engine.scheduler.preempt(2, 0);
  engine.scheduler.preempt(0, 0);
  engine.scheduler.preempt(3, 0);
  CHECK(draws_of(engine.step()) == std::vector<std::int64_t>{1, 0, 2, 3, 9});
}

TEST_CASE("the cache is reset under running requests: all are computed again, in order") {
  FakeEngine engine(small(64));
  std::vector<GroupRequest> requests;
  for (std::int64_t draw = 0; draw < 4; ++draw) {
    requests.push_back(request(draw, 9, 8, 1 + static_cast<std::int32_t>(draw % 2)));
    engine.scheduler.add(requests.back());
  }
  for (int i = 0; i < 3; ++i) {
    engine.step();
  }
  CHECK_FALSE(engine.scheduler.reset_cache());
  engine.scheduler.preempt_all();
  CHECK(engine.scheduler.reset_cache());
  const auto hits = engine.scheduler.counters().prefix_hit_tokens;
  // The second samples of 1 and 3 wait for the prompts' blocks.
  CHECK(draws_of(engine.step()) == std::vector<std::int64_t>{0, 1, 2, 3});
  engine.run();
  CHECK(engine.scheduler.counters().prefix_hit_tokens == hits);
  check_expected(engine, requests);
}

TEST_CASE("random priorities in a small pool keep the order of the queues and the tokens") {
  FakeEngine engine(small(16));
  std::uint64_t counter = 0;
  const auto below = [&](std::uint64_t n) {
    return static_cast<std::int64_t>(random_below({.seed = 5, .draw = counter++}, n));
  };
  std::vector<GroupRequest> requests;
  for (std::int64_t draw = 0; draw < 60; ++draw) {
    requests.push_back(
        request(draw, 1 + below(20), 1 + below(20), static_cast<std::int32_t>(1 + below(4))));
    requests.back().priority = static_cast<std::int32_t>(below(5)) - 2;
    engine.scheduler.add(requests.back());
    for (std::int64_t i = below(6); i > 0; --i) {
      engine.step();
    }
  }
  engine.run();
  CHECK(engine.scheduler.counters().preemptions > 20);
  check_expected(engine, requests);
  check_clean(engine);
}

}  // namespace
}  // namespace tandem::rollout
