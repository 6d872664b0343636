// Log-probabilities of a prompt's tokens, whatever is found in the cache and however it is cut.
#include <doctest/doctest.h>

#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;
using test::make_prompt;

SchedulerConfig small(std::int64_t chunk) {
  return {.blocks = {.num_blocks = 64, .block_size = 4},
          .max_batched_tokens = 32,
          .max_sequences = 8,
          .max_prompt_chunk = chunk,
          .check_each_step = true};
}

GroupRequest request(std::int64_t draw) {
  GroupRequest request{.draw = draw, .num_samples = 2, .prompt = make_prompt(22)};
  request.params.max_new_tokens = 3;
  request.params.num_prompt_logprobs = 2;
  request.params.temperature = 0.8;
  return request;
}

void check_scores(FakeEngine& engine, const GroupRequest& wanted) {
  const PromptLogprobs& got = engine.finished.at({wanted.draw, 1}).prompt;
  REQUIRE(got.logprobs.size() == wanted.prompt.size() - 1);
  REQUIRE(got.top.size() == got.logprobs.size());
  for (std::size_t i = 0; i + 1 < wanted.prompt.size(); ++i) {
    const auto logits = engine.forward.logits_after(std::span(wanted.prompt).first(i + 1), 0);
    const SampledToken token = engine.sampler.sample(
        logits.data(), {.params = &wanted.params, .given = wanted.prompt[i + 1]});
    CHECK(got.logprobs[i] == token.logprob);
    CHECK(got.top[i] == token.top);
  }
  CHECK(engine.finished.at({wanted.draw, 0}).prompt.logprobs == got.logprobs);
  CHECK(engine.is_as_expected(wanted, 0));
  CHECK(engine.is_as_expected(wanted, 1));
}

TEST_CASE("a prompt's log-probabilities are the same in any chunks, and a second time") {
  for (const std::int64_t chunk : {0, 1, 7}) {
    FakeEngine engine(small(chunk));
    for (std::int64_t draw = 0; draw < 2; ++draw) {
      engine.scheduler.add(request(draw));
      engine.run();
      check_scores(engine, request(draw));
    }
    CHECK(engine.scheduler.counters().prefix_hit_tokens == 0);  // it is not read, and is filled:
    GroupRequest reader = request(5);
    reader.params.num_prompt_logprobs = -1;
    engine.scheduler.add(reader);
    engine.run();
    CHECK(engine.scheduler.counters().prefix_hit_tokens == 20);
    CHECK(engine.finished.at({5, 0}).prompt.logprobs.empty());
  }
}

TEST_CASE("a prompt that is computed again scores each token once") {
  for (int at = 1; at < 6; ++at) {
    FakeEngine engine(small(5));
    engine.scheduler.add(request(0));
    for (int i = 0; i < at; ++i) {
      engine.step();
    }
    engine.scheduler.preempt_all();
    engine.run();
    check_scores(engine, request(0));
  }
}

TEST_CASE("a prompt of one token has no log-probabilities") {
  FakeEngine engine(small(0));
  GroupRequest wanted = request(0);
  wanted.prompt = {3};
  engine.scheduler.add(wanted);
  engine.run();
  CHECK(engine.finished.at({0, 0}).prompt.logprobs.empty());
  CHECK(engine.is_as_expected(wanted, 0));
}

}  // namespace
}  // namespace tandem::rollout
