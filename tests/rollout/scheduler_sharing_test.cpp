// Groups, prefixes, versions and recomputation: what is shared changes no token.
#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;
using test::make_prompt;

SchedulerConfig small(std::int32_t num_blocks = 128, std::int32_t hash_bits = 128) {
  return {.blocks = {.num_blocks = num_blocks, .block_size = 4, .hash_bits = hash_bits},
          .max_batched_tokens = 64,
          .max_sequences = 32,
          .check_each_step = true};
}

GroupRequest group(std::int64_t draw, std::vector<TokenId> prompt, std::int32_t num_samples = 1) {
  GroupRequest request{.draw = draw, .num_samples = num_samples, .prompt = std::move(prompt)};
  request.params.max_new_tokens = 7;
  return request;
}

std::vector<TokenId> with_tail(std::vector<TokenId> ids, TokenId tail) {
  ids.push_back(tail);
  return ids;
}

void check_expected(FakeEngine& engine, const GroupRequest& request) {
  for (std::int32_t i = 0; i < request.num_samples; ++i) {
    const std::int32_t sample = request.first_sample + i;
    CHECK(engine.finished.at({request.draw, sample}).ids == engine.expected(request, sample));
  }
}

TEST_CASE("a group's prompt is computed once, and all samples draw from its last row") {
  FakeEngine engine(small());
  const GroupRequest request = group(0, make_prompt(10), 8);
  engine.scheduler.add(request);
  const StepPlan first = engine.step();
  CHECK(first.ids.size() == 10);
  CHECK(first.sample_rows.size() == 1);
  REQUIRE(first.samples.size() == 8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    CHECK(first.samples[i].logits_row == 0);
    CHECK(first.samples[i].input.key.sample == i);
  }
  const StepPlan second = engine.step();
  CHECK(second.ids.size() == 8);
  CHECK(second.copies.size() == 7);
  engine.run();
  check_expected(engine, request);
  CHECK(engine.scheduler.counters().forks == 7);
  CHECK(engine.scheduler.counters().tokens_prefill == 10);
}

TEST_CASE("samples of a group differ, repeat with their seed, and change with it") {
  std::set<std::vector<TokenId>> seen;
  for (const std::uint64_t seed : {1, 1, 2}) {
    FakeEngine engine(small());
    GroupRequest request = group(0, make_prompt(10), 4);
    request.params.seed = seed;
    engine.scheduler.add(request);
    engine.run();
    for (std::int32_t sample = 0; sample < 4; ++sample) {
      seen.insert(engine.finished.at({0, sample}).ids);
    }
  }
  CHECK(seen.size() == 8);
}

TEST_CASE("requests of one batch draw with their own seeds, though prompt and step are the same") {
  FakeEngine engine(small());
  std::vector<GroupRequest> requests;
  for (const std::uint64_t seed : {1, 2, 1}) {
    requests.push_back(group(static_cast<std::int64_t>(requests.size()), make_prompt(10), 3));
    requests.back().params.seed = seed;
    engine.scheduler.add(requests.back());
  }
  engine.run();
  for (const GroupRequest& request : requests) {
    for (std::int32_t sample = 0; sample < 3; ++sample) {
      CHECK(engine.is_as_expected(request, sample));
    }
  }
}

TEST_CASE("samples that end with their first token are never forked") {
  FakeEngine engine(small());
  GroupRequest request = group(0, make_prompt(10), 4);
  request.params.max_new_tokens = 1;
  engine.scheduler.add(request);
  engine.run();
  CHECK(engine.finished.size() == 4);
  CHECK(engine.scheduler.counters().forks == 0);
  CHECK(engine.scheduler.counters().tokens_decode == 0);
}

TEST_CASE("prompts that begin alike and wait together compute the common blocks once") {
  FakeEngine engine(small());
  const auto common = make_prompt(41);  // 10 full blocks
  std::vector<GroupRequest> requests;
  for (TokenId draw = 0; draw < 5; ++draw) {
    requests.push_back(group(draw, with_tail(common, draw + 1), 2));
    engine.scheduler.add(requests.back());
  }
  requests.push_back(group(9, make_prompt(12, 9)));
  engine.scheduler.add(requests.back());
  // The first prompt and the one that shares nothing start; the others wait for the common blocks.
  CHECK(engine.step().ids.size() == 42 + 12);
  CHECK(engine.step().ids.size() == 2 + 1 + 4 * 2);
  engine.run();
  CHECK(engine.scheduler.counters().tokens_prefill == 42 + 12 + 4 * 2);
  CHECK(engine.scheduler.counters().prefix_hit_tokens == 4 * 40);
  for (const GroupRequest& request : requests) {
    check_expected(engine, request);
  }
}

TEST_CASE("a prompt waits for common blocks over several chunks, not for the rest of the other") {
  SchedulerConfig config = small();
  config.max_prompt_chunk = 8;
  FakeEngine engine(config);
  auto long_prompt = make_prompt(12);
  const auto short_prompt = with_tail(long_prompt, 3);
  for (int i = 0; i < 40; ++i) {
    long_prompt.push_back(5);
  }
  engine.scheduler.add(group(0, long_prompt));
  engine.scheduler.add(group(1, short_prompt));
  CHECK(engine.step().ids.size() == 8);
  CHECK(engine.step().ids.size() == 8);      // positions 8 to 15 of the first
  CHECK(engine.step().ids.size() == 8 + 1);  // 12 of the second's 13 tokens are found
  engine.run();
  check_expected(engine, group(0, long_prompt));
  check_expected(engine, group(1, short_prompt));
}

TEST_CASE("prompts that are held back for another's blocks start in the order they came in") {
  SchedulerConfig config = small();
  config.max_prompt_chunk = 16;
  FakeEngine engine(config);
  const auto long_prompt = make_prompt(60);  // A: four chunks
  const auto starts_alike = [&](TokenId tail) {
    return with_tail({long_prompt.begin(), long_prompt.begin() + 48}, tail);
  };
  engine.scheduler.add(group(0, long_prompt));
  engine.scheduler.add(group(1, starts_alike(1)));     // B: held back
  engine.scheduler.add(group(2, make_prompt(12, 9)));  // C: shares nothing and passes
  engine.scheduler.add(group(3, starts_alike(3)));     // D: held back
  std::vector<std::int64_t> started;
  const auto step = [&] {
    const StepPlan plan = engine.scheduler.schedule();
    for (const SequenceView& sequence : plan.sequences) {
      if (std::ranges::find(started, sequence.draw) == started.end()) {
        started.push_back(sequence.draw);
      }
    }
    engine.keep(engine.scheduler.commit(plan, engine.draw(plan)));
  };
  step();
  CHECK(started == std::vector<std::int64_t>{0, 2});
  engine.scheduler.add(group(4, starts_alike(4)));  // E: comes later and waits too
  while (engine.scheduler.has_work()) {
    step();
  }
  CHECK(started == std::vector<std::int64_t>{0, 2, 1, 3, 4});
  check_expected(engine, group(3, starts_alike(3)));
}

TEST_CASE("when the prompt in front is aborted, the one that waited for it starts") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0, make_prompt(100)));
  engine.scheduler.add(group(1, make_prompt(100)));
  engine.step();
  CHECK(engine.scheduler.counters().waiting == 1);
  engine.scheduler.abort(0);
  engine.run();
  check_expected(engine, group(1, make_prompt(100)));
  CHECK(engine.scheduler.counters().prefix_hit_tokens == 64);  // what the aborted one had written
}

TEST_CASE("results do not depend on the cache, and a request may fill it without reading it") {
  FakeEngine engine(small());
  for (const bool read_cache : {false, false, true}) {
    GroupRequest request = group(0, make_prompt(21), 2);
    request.read_cache = read_cache;
    engine.finished.clear();
    engine.scheduler.add(request);
    engine.run();
    check_expected(engine, request);
    CHECK(engine.scheduler.counters().prefix_hit_tokens == (read_cache ? 20 : 0));
  }
}

TEST_CASE("different salts share no block, equal ones do") {
  FakeEngine engine(small());
  std::int64_t draw = 0;
  for (const char* salt : {"a", "b", "a"}) {
    GroupRequest request = group(draw++, make_prompt(21));
    request.cache_salt = salt;
    engine.scheduler.add(request);
    engine.run();
  }
  CHECK(engine.scheduler.counters().prefix_hit_tokens == 20);
}

TEST_CASE("after new weights the same prompt is computed again and equals a fresh engine's") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0, make_prompt(21)));
  engine.run();
  const auto before = engine.finished.at({0, 0}).ids;
  engine.scheduler.set_weight_version(1);
  engine.finished.clear();
  engine.scheduler.add(group(0, make_prompt(21)));
  engine.run();
  CHECK(engine.scheduler.counters().prefix_hit_tokens == 0);
  check_expected(engine, group(0, make_prompt(21)));
  CHECK(engine.finished.at({0, 0}).ids != before);
  CHECK_THROWS_AS(engine.scheduler.set_weight_version(1), Error);
}

TEST_CASE("new weights while samples run: each token carries its version, later ones see the new") {
  FakeEngine engine(small());
  engine.scheduler.add(group(0, make_prompt(9)));
  engine.step();
  engine.step();
  engine.scheduler.set_weight_version(3);
  engine.scheduler.add(group(1, make_prompt(9)));
  engine.run();
  const auto& versions = engine.finished.at({0, 0}).versions;
  CHECK(versions == std::vector<WeightVersion>{0, 0, 3, 3, 3, 3, 3});
  CHECK(engine.scheduler.counters().prefix_hit_tokens == 0);
  check_expected(engine, group(1, make_prompt(9)));
}

TEST_CASE("a sample that is computed again goes on with the same tokens, at whichever step") {
  for (int at = 1; at < 8; ++at) {
    for (const std::int32_t num_blocks : {12, 128}) {  // with and without room to find old blocks
      FakeEngine engine(small(num_blocks));
      const GroupRequest request = group(0, make_prompt(10), 3);
      engine.scheduler.add(request);
      for (int i = 0; i < at && engine.scheduler.has_work(); ++i) {
        engine.step();
      }
      for (std::int32_t sample = 0; sample < 3; ++sample) {
        engine.scheduler.preempt(0, sample);
      }
      engine.scheduler.check_invariants();
      const auto hits = engine.scheduler.counters().prefix_hit_tokens;
      engine.run();
      check_expected(engine, request);
      CHECK(engine.scheduler.counters().prefix_hit_tokens == hits);
    }
  }
}

TEST_CASE("a prompt is computed again from the middle of its chunks") {
  SchedulerConfig config = small();
  config.max_prompt_chunk = 5;
  FakeEngine engine(config);
  const GroupRequest request = group(0, make_prompt(23), 2);
  engine.scheduler.add(request);
  engine.step();
  engine.step();
  CHECK(engine.scheduler.preempt(0, 1));
  CHECK_FALSE(engine.scheduler.preempt(0, 1));  // it waits
  CHECK_FALSE(engine.scheduler.preempt(7, 0));
  engine.run();
  check_expected(engine, request);
  CHECK(engine.scheduler.counters().tokens_recomputed == 2);  // 8 of 10 rows were found again
  CHECK(engine.scheduler.counters().tokens_prefill == 23);
}

TEST_CASE("with a hash of one bit all samples are still right") {
  FakeEngine engine(small(64, 1));
  std::vector<GroupRequest> requests;
  for (TokenId draw = 0; draw < 10; ++draw) {
    requests.push_back(group(draw, make_prompt(13 + draw % 4, draw % 3), 2));
    engine.scheduler.add(requests.back());
  }
  engine.run();
  for (const GroupRequest& request : requests) {
    check_expected(engine, request);
  }
}

TEST_CASE("samples of one draw may come in several requests with numbers of their own") {
  FakeEngine engine(small());
  GroupRequest first = group(4, make_prompt(10), 2);
  GroupRequest second = first;
  second.first_sample = 2;
  engine.scheduler.add(first);
  engine.scheduler.add(second);
  engine.run();
  check_expected(engine, first);
  check_expected(engine, second);
  CHECK(engine.finished.size() == 4);
}

TEST_CASE("a stop string ends a sample with its tokens whole and its text cut") {
  struct Letters final : TextSink {
    std::string push(TokenId id) override { return std::string(1, static_cast<char>('a' + id)); }
    std::string finish() override { return {}; }
  };
  const auto letters = [](std::span<const TokenId>) { return std::make_unique<Letters>(); };
  FakeEngine engine(small(), 12, letters);
  engine.scheduler.add(group(0, make_prompt(10)));
  engine.run();
  const auto ids = engine.finished.at({0, 0}).ids;
  GroupRequest request = group(1, make_prompt(10));
  request.draw = 0;
  request.params.stop_strings = {
      {static_cast<char>('a' + ids[2]), static_cast<char>('a' + ids[3])}};
  engine.finished.clear();
  engine.scheduler.add(request);
  engine.run();
  const FinishedSample& ended = engine.finished.at({0, 0});
  CHECK(ended.stop.reason == FinishReason::kStopString);
  CHECK(ended.stop.string == request.params.stop_strings[0]);
  CHECK(ended.ids == std::vector<TokenId>(ids.begin(), ids.begin() + 4));
  CHECK(ended.text.size() == 2);
}

}  // namespace
}  // namespace tandem::rollout
