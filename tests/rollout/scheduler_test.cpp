#include "rollout/scheduler.h"

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;
using test::make_prompt;

SchedulerConfig small(std::int32_t num_blocks = 64) {
  return {.blocks = {.num_blocks = num_blocks, .block_size = 4},
          .max_batched_tokens = 64,
          .max_sequences = 16,
          .check_each_step = true};
}

GroupRequest request(std::int64_t draw, std::vector<TokenId> prompt, std::int64_t num_tokens = 4) {
  GroupRequest request{.draw = draw, .prompt = std::move(prompt)};
  request.params.max_new_tokens = num_tokens;
  return request;
}

// Rows of each sequence of a step, by draw.
std::map<std::int64_t, int> rows_by_draw(const StepPlan& plan) {
  std::map<std::int64_t, int> rows;
  for (const std::int32_t sequence : plan.sequence_of_row) {
    ++rows[plan.sequences[sequence].draw];
  }
  return rows;
}

TEST_CASE("three prompts of 800 tokens share a budget of 1,024: 800, 224, and the third waits") {
  SchedulerConfig config = small(1024);
  config.max_batched_tokens = 1024;
  for (const std::int64_t chunk : {0, 400}) {
    config.max_prompt_chunk = chunk;
    FakeEngine engine(config);
    for (TokenId draw = 0; draw < 3; ++draw) {
      engine.scheduler.add(request(draw, make_prompt(800, draw)));
    }
    const auto rows = rows_by_draw(engine.step());
    if (chunk == 0) {
      CHECK(rows == std::map<std::int64_t, int>{{0, 800}, {1, 224}});
      CHECK(engine.scheduler.counters().waiting == 1);
    } else {
      CHECK(rows == std::map<std::int64_t, int>{{0, 400}, {1, 400}, {2, 224}});
    }
  }
}

TEST_CASE("samples that are decoded come before prompt chunks and are never starved by them") {
  FakeEngine engine(small(256));
  engine.scheduler.add(request(0, make_prompt(5), 20));
  engine.step();
  engine.scheduler.add(request(1, make_prompt(300, 1)));
  for (int i = 0; i < 4; ++i) {
    const StepPlan plan = engine.step();
    CHECK(rows_by_draw(plan) == std::map<std::int64_t, int>{{0, 1}, {1, 63}});
    CHECK(plan.sequence_of_row[0] == 0);
    CHECK(plan.samples.size() == 1);  // no logits for the middle of a prompt
  }
}

TEST_CASE("a plan names rows, positions and slots of one sequence in order") {
  FakeEngine engine(small());
  engine.scheduler.add(request(7, make_prompt(6)));
  const StepPlan plan = engine.scheduler.schedule();
  CHECK(plan.ids == make_prompt(6));
  CHECK(plan.positions == std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
  CHECK(plan.slots == std::vector<std::int32_t>{4, 5, 6, 7, 8, 9});  // blocks 1 and 2
  CHECK(plan.sample_rows == std::vector<std::int32_t>{5});
  REQUIRE(plan.samples.size() == 1);
  CHECK(plan.samples[0].input.key.draw == 7);
  CHECK(plan.samples[0].input.key.position == 6);
  CHECK(plan.samples[0].input.num_generated == 0);
  CHECK(plan.sequences[0].slots.size() == 6);
  engine.scheduler.commit(plan, engine.draw(plan));
  const StepPlan next = engine.step();
  CHECK(next.positions == std::vector<std::int32_t>{6});
  CHECK(next.slots == std::vector<std::int32_t>{10});
}

TEST_CASE("chunked prompts give the samples of whole ones") {
  for (const std::int64_t chunk : {0, 1, 7, 16}) {
    SchedulerConfig config = small();
    config.max_prompt_chunk = chunk;
    FakeEngine engine(config);
    GroupRequest wanted = request(3, make_prompt(37), 9);
    wanted.num_samples = 3;
    engine.scheduler.add(wanted);
    engine.run();
    for (std::int32_t sample = 0; sample < 3; ++sample) {
      CHECK(engine.finished.at({3, sample}).ids == engine.expected(wanted, sample));
    }
  }
}

TEST_CASE("the arrays of a sample have one entry a token") {
  FakeEngine engine(small());
  GroupRequest wanted = request(0, make_prompt(5), 6);
  wanted.params.min_new_tokens = 3;
  wanted.params.stop_ids = {2, 4};
  wanted.params.num_top_logprobs = 2;
  engine.scheduler.add(wanted);
  engine.run();
  const FinishedSample& sample = engine.finished.at({0, 0});
  const std::size_t num_tokens = sample.ids.size();
  CHECK(num_tokens >= 3);
  CHECK(sample.logprobs.size() == num_tokens);
  CHECK(sample.versions.size() == num_tokens);
  CHECK(sample.top.size() == num_tokens);
  REQUIRE(sample.allowed.size() == num_tokens);
  CHECK(sample.allowed[0].banned == std::vector<TokenId>{2, 4});
  CHECK(sample.allowed[2].banned == std::vector<TokenId>{2, 4});
  CHECK((num_tokens == 3 || sample.allowed[3].is_all()));
}

TEST_CASE("a request that can never fit is refused when it is added, with the numbers") {
  Scheduler scheduler(small(9));
  CHECK_THROWS_WITH_AS(
      scheduler.add(request(5, make_prompt(37), 4)),
      "draw 5: 37 prompt and 4 new tokens need 10 KV blocks of 4 tokens, the pool has 8: give more "
      "memory to the KV cache or lower max_new_tokens",
      UserError);
  GroupRequest wide = request(5, make_prompt(8), 9);
  wide.num_samples = 9;  // more than run at one time, but each of them fits
  scheduler.add(wide);
  CHECK_THROWS_AS(scheduler.add(request(6, {})), UserError);
  CHECK_THROWS_AS(scheduler.add(wide), Error);  // the same draw again
  GroupRequest none = request(9, make_prompt(3));
  none.num_samples = 0;
  CHECK_THROWS_AS(scheduler.add(none), UserError);
  none.num_samples = 17;
  CHECK_THROWS_AS(scheduler.add(none), UserError);
  GroupRequest stopped = request(9, make_prompt(3));
  stopped.params.stop_strings = {"x"};
  CHECK_THROWS_AS(scheduler.add(stopped), UserError);
}

TEST_CASE("a group that exactly fills the pool runs to its end") {
  FakeEngine engine(small(9));
  GroupRequest wanted = request(0, make_prompt(8), 9);
  wanted.num_samples = 3;
  wanted.params.ignore_eos = true;
  engine.scheduler.add(wanted);
  engine.run();
  CHECK(engine.finished.size() == 3);
  CHECK(engine.finished.at({0, 2}).ids.size() == 9);
  CHECK(engine.scheduler.counters().kv_usage_peak == 1.0);
  CHECK(engine.scheduler.counters().kv_usage == 0.0);
}

TEST_CASE("prompts at the model's length: one token less runs, the length itself is refused") {
  SchedulerConfig config = small();
  config.max_model_len = 10;
  FakeEngine engine(config);
  CHECK_THROWS_AS(engine.scheduler.add(request(0, make_prompt(11))), UserError);
  CHECK_THROWS_AS(engine.scheduler.add(request(0, make_prompt(10))), UserError);
  engine.scheduler.add(request(0, make_prompt(9)));
  engine.scheduler.add(request(1, make_prompt(7, 1)));
  engine.run();
  CHECK(engine.finished.at({0, 0}).ids.size() == 1);
  CHECK(engine.finished.at({0, 0}).stop.reason == FinishReason::kLength);
  CHECK(engine.finished.at({1, 0}).ids.size() == 3);
}

TEST_CASE("two long prompts that do not fit together run one after the other") {
  FakeEngine engine(small(21));
  engine.scheduler.add(request(0, make_prompt(50, 0), 8));  // 15 of 20 blocks
  engine.scheduler.add(request(1, make_prompt(50, 1), 8));
  engine.scheduler.add(request(2, make_prompt(2, 2), 2));  // would fit, but the queue is in order
  engine.step();
  CHECK(engine.scheduler.counters().running == 1);
  CHECK(engine.scheduler.counters().waiting == 2);
  engine.run();
  CHECK(engine.finished.size() == 3);
}

TEST_CASE("never more samples run than allowed, and never more rows than the budget") {
  SchedulerConfig config = small(512);
  config.max_batched_tokens = 20;
  config.max_sequences = 6;
  FakeEngine engine(config);
  for (TokenId draw = 0; draw < 8; ++draw) {
    GroupRequest wanted = request(draw, make_prompt(11, draw), 5);
    wanted.num_samples = 1 + draw % 4;
    engine.scheduler.add(wanted);
  }
  while (engine.scheduler.has_work()) {
    CHECK(engine.step().ids.size() <= 20);
    CHECK(engine.scheduler.counters().running <= 6);
  }
  CHECK(engine.finished.size() == 20);
  config.max_batched_tokens = 5;
  CHECK_THROWS_AS(Scheduler{config}, UserError);
}

TEST_CASE("rows of logits that are not finite end their samples with an error, and only them") {
  FakeEngine engine(small());
  GroupRequest wanted = request(0, make_prompt(5), 8);
  wanted.num_samples = 2;
  engine.scheduler.add(wanted);
  engine.step();
  engine.step();
  engine.forward.break_logits(true);
  engine.step();
  engine.forward.break_logits(false);
  engine.scheduler.add(request(1, make_prompt(5, 1)));
  engine.run();
  for (std::int32_t sample = 0; sample < 2; ++sample) {
    const FinishedSample& ended = engine.finished.at({0, sample});
    CHECK(ended.stop.reason == FinishReason::kError);
    CHECK(ended.ids.size() == 2);
    CHECK(ended.logprobs.size() == 2);
  }
  CHECK(engine.finished.at({1, 0}).stop.reason == FinishReason::kLength);
  CHECK(engine.scheduler.counters().nan_rows == 2);
}

TEST_CASE("schedule and commit alternate, and tokens match the plan") {
  FakeEngine engine(small());
  CHECK_THROWS_AS(engine.scheduler.commit({}, {}), Error);
  engine.scheduler.add(request(0, make_prompt(5)));
  const StepPlan plan = engine.scheduler.schedule();
  CHECK_THROWS_AS((void)engine.scheduler.schedule(), Error);
  CHECK_THROWS_AS(engine.scheduler.commit(plan, {}), Error);
  CHECK_THROWS_AS(engine.scheduler.set_weight_version(1), Error);
  CHECK_THROWS_AS(engine.scheduler.preempt(0, 0), Error);
  engine.scheduler.commit(plan, engine.draw(plan));
}

TEST_CASE("rows computed and rows found in the cache add up to the prompts") {
  FakeEngine engine(small(512));
  std::int64_t num_prompt_tokens = 0;
  for (TokenId draw = 0; draw < 12; ++draw) {
    engine.scheduler.add(request(draw, make_prompt(30 + draw, draw % 3), 3));
    num_prompt_tokens += 30 + draw;
  }
  engine.run();
  const SchedulerCounters counters = engine.scheduler.counters();
  CHECK(counters.prefix_query_tokens == num_prompt_tokens);
  CHECK(counters.tokens_prefill + counters.prefix_hit_tokens == num_prompt_tokens);
  CHECK(counters.prefix_hit_tokens >= 9 * 28);
  CHECK(counters.tokens_decode == 12 * 2);
  CHECK(counters.tokens_recomputed == 0);
}

}  // namespace
}  // namespace tandem::rollout
