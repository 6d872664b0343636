// Guessed tokens: the same results with and without them, at any temperature.
#include <doctest/doctest.h>

#include "rollout/ngram_draft.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;

using Ids = std::vector<TokenId>;

constexpr SpeculationConfig kNgram = {.num_tokens = 4, .lookup_max = 3, .lookup_min = 1};

SchedulerConfig config(std::int64_t num_drafts, std::int32_t num_blocks = 64) {
  SchedulerConfig config = {.blocks = {.num_blocks = num_blocks, .block_size = 4},
                            .max_batched_tokens = 48,
                            .max_sequences = 12,
                            .speculation = kNgram,
                            .check_each_step = true};
  config.speculation.num_tokens = num_drafts;
  return config;
}

// Three ids only: a guess is right in a third of the cases, and texts repeat.
constexpr std::int64_t kNumIds = 3;

GroupRequest request(std::int64_t draw, double temperature) {
  GroupRequest request{.draw = draw, .num_samples = 3, .prompt = {0, 1, 2, 0, 1, 2, 0}};
  request.prompt.push_back(static_cast<TokenId>(draw % kNumIds));
  request.params.max_new_tokens = 25;
  request.params.temperature = temperature;
  return request;
}

TEST_CASE("guesses are what followed the longest end of the text the last time") {
  const SpeculationConfig s = {.num_tokens = 3, .lookup_max = 3, .lookup_min = 2};
  CHECK(propose_ngram(Ids{1, 2, 3, 4, 9, 1, 2}, s, 3) == Ids{3, 4, 9});
  CHECK(propose_ngram(Ids{1, 2, 3, 9, 1, 2, 4, 9, 1, 2}, s, 3) == Ids{4, 9, 1});  // the last time
  CHECK(propose_ngram(Ids{7, 1, 2, 3, 5, 1, 2, 4, 7, 1, 2}, s, 1) == Ids{3});     // the longest
  CHECK(propose_ngram(Ids{5, 5, 5, 5}, s, 3) == Ids{5, 5, 5});
  CHECK(propose_ngram(Ids{1, 2, 1, 2, 1, 2}, s, 5) == Ids{1, 2, 1, 2, 1});
  CHECK(propose_ngram(Ids{8, 2, 3, 9, 2}, s, 3).empty());  // one token is too short
  CHECK(propose_ngram(Ids{1, 2, 1, 2}, s, 0).empty());
  CHECK(propose_ngram(Ids{1}, s, 3).empty());
  CHECK(propose_ngram(Ids{}, s, 3).empty());
}

TEST_CASE("ids and log-probabilities are the same bits with and without guesses") {
  for (const double temperature : {0.0, 0.7, 1.0, 2.0}) {
    for (const std::int32_t num_blocks : {64, 14}) {
      FakeEngine engine(config(4, num_blocks), kNumIds);
      std::vector<GroupRequest> requests;
      for (std::int64_t draw = 0; draw < 4; ++draw) {
        requests.push_back(request(draw, temperature));
        requests.back().params.top_p = draw == 2 ? 0.8 : 1.0;
        requests.back().params.repetition_penalty = draw == 3 ? 1.3 : 1.0;
        // Counts how often an id came: a draft that is counted twice, or too early, moves it.
        requests.back().params.frequency_penalty = draw == 1 ? 2.0 : 0.0;
        engine.scheduler.add(requests.back());
      }
      engine.run();
      for (const GroupRequest& wanted : requests) {
        for (std::int32_t sample = 0; sample < 3; ++sample) {
          CHECK(engine.is_as_expected(wanted, sample));
        }
      }
      const SchedulerCounters counters = engine.scheduler.counters();
      CHECK(counters.drafts > 0);
      CHECK(counters.drafts_accepted > 0);
      CHECK(counters.drafts_accepted < counters.drafts);
      CHECK(engine.scheduler.blocks().num_free() == engine.scheduler.blocks().num_usable());
    }
  }
}

TEST_CASE("guesses save steps, and the rows of each token are counted once") {
  std::int64_t num_steps[2] = {};
  std::int64_t num_rows[2] = {};
  for (const std::int64_t num_drafts : {0, 4}) {
    FakeEngine engine(config(num_drafts), 1);  // one id: every guess is right
    GroupRequest wanted = request(0, 1.0);
    wanted.prompt.assign(8, 0);
    engine.scheduler.add(wanted);
    engine.run();
    num_steps[num_drafts / 4] = engine.scheduler.counters().steps;
    num_rows[num_drafts / 4] = engine.scheduler.counters().tokens_decode;
    CHECK(engine.finished.at({0, 2}).ids.size() == 25);
  }
  CHECK(num_steps[0] == 25);
  CHECK(num_steps[1] == 1 + 5);  // 24 tokens after the first, five a step
  CHECK(num_rows[0] == num_rows[1]);
}

TEST_CASE("guesses stay within the budget, before the last token, and out of prompts") {
  SchedulerConfig tight = config(4);
  tight.max_batched_tokens = 5;
  tight.max_sequences = 3;
  FakeEngine engine(tight, 1);
  GroupRequest wanted = request(0, 1.0);
  wanted.prompt.assign(8, 0);
  engine.scheduler.add(wanted);
  CHECK(engine.step().ids.size() == 5);
  CHECK(engine.step().samples.size() == 3);  // the last chunk of the prompt, no guess in it
  while (engine.scheduler.has_work()) {
    const StepPlan plan = engine.scheduler.schedule();
    CHECK(plan.ids.size() <= 5);
    for (const std::int32_t position : plan.positions) {
      CHECK(position < 8 + 25 - 1);  // the last token has no row
    }
    engine.keep(engine.scheduler.commit(plan, engine.draw(plan)));
  }
  CHECK(engine.finished.at({0, 0}).ids.size() == 25);
}

TEST_CASE("what stands behind the end of a sample is dropped") {
  for (const std::int64_t length : {1, 2, 3, 7}) {
    FakeEngine engine(config(4), 1);
    GroupRequest wanted = request(0, 1.0);
    wanted.prompt.assign(8, 0);
    wanted.params.max_new_tokens = length;
    engine.scheduler.add(wanted);
    engine.run();
    CHECK(engine.finished.at({0, 1}).ids.size() == static_cast<std::size_t>(length));
    CHECK(engine.finished.at({0, 1}).logprobs.size() == static_cast<std::size_t>(length));
  }
  // A stop id in the middle of a burst.
  bool in_burst = false;
  for (std::int64_t draw = 0; draw < 40; ++draw) {
    FakeEngine engine(config(6), kNumIds);
    GroupRequest wanted = request(draw, 1.0);
    wanted.params.stop_ids = {1};
    wanted.params.min_new_tokens = 2;
    engine.scheduler.add(wanted);
    while (engine.scheduler.has_work()) {
      const auto accepted = engine.scheduler.counters().drafts_accepted;
      const auto num_ended = engine.finished.size();
      engine.step();
      in_burst |= engine.finished.size() > num_ended &&
                  engine.scheduler.counters().drafts_accepted > accepted;
    }
    for (std::int32_t sample = 0; sample < 3; ++sample) {
      CHECK(engine.is_as_expected(wanted, sample));
    }
  }
  CHECK(in_burst);
}

TEST_CASE("no block is found that a wrong guess was written to") {
  FakeEngine engine(config(4), kNumIds);
  const GroupRequest first = request(0, 1.0);
  engine.scheduler.add(first);
  while (engine.scheduler.has_work()) {
    engine.step();
    engine.scheduler.check_invariants();
  }
  // The whole of each sample as a prompt: what is found in the cache must be its own rows.
  for (std::int32_t sample = 0; sample < 3; ++sample) {
    GroupRequest again = request(5 + sample, 1.0);
    const auto& ids = engine.finished.at({0, sample}).ids;
    again.prompt = first.prompt;
    again.prompt.insert(again.prompt.end(), ids.begin(), ids.end());
    const auto hits = engine.scheduler.counters().prefix_hit_tokens;
    engine.scheduler.add(again);
    engine.run();
    CHECK(engine.scheduler.counters().prefix_hit_tokens - hits == 32);  // 8 + 25 tokens, all full
    CHECK(engine.is_as_expected(again, 0));
  }
}

TEST_CASE("logits that are not finite behind a guess end the sample where it is reached") {
  FakeEngine engine(config(4), 1);
  GroupRequest wanted = request(0, 1.0);
  wanted.prompt.assign(8, 0);
  engine.scheduler.add(wanted);
  engine.step();
  engine.step();
  const StepPlan plan = engine.scheduler.schedule();
  auto drawn = engine.draw(plan);
  REQUIRE(drawn.size() == 15);
  drawn[2].finite = false;
  engine.keep(engine.scheduler.commit(plan, drawn));
  engine.run();
  CHECK(engine.finished.at({0, 0}).stop.reason == FinishReason::kError);
  CHECK(engine.finished.at({0, 0}).ids.size() == 1 + 5 + 2);
  CHECK(engine.finished.at({0, 1}).ids.size() == 25);
}

}  // namespace
}  // namespace tandem::rollout
