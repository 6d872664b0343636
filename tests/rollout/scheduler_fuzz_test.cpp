// Random operations: the books balance after each, and whoever ran under one version of the weights
// has the tokens of a run alone.
#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "support/fake_forward.h"

namespace tandem::rollout {
namespace {

using test::FakeEngine;

// What differs from run to run.
struct Shape {
  std::int32_t num_blocks = 40;
  std::int32_t hash_bits = 128;
  std::int64_t num_drafts = 0;
};

SchedulerConfig config_of(const Shape& shape) {
  return {.blocks = {.num_blocks = shape.num_blocks, .block_size = 4, .hash_bits = shape.hash_bits},
          .max_batched_tokens = 24,
          .max_sequences = 12,
          .max_prompt_chunk = 10,
          .speculation = {.num_tokens = shape.num_drafts, .lookup_max = 3, .lookup_min = 1},
          .check_each_step = true};
}

class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed, const Shape& shape)
      : seed_(seed), max_prompt_(4 * (shape.num_blocks - 1) - 9), engine_(config_of(shape), 6) {}

  void operate() {
    const std::uint64_t dice = below(100);
    if (dice < 25 && live_.size() < 12) {
      add();
    } else if (dice < 29) {
      engine_.scheduler.abort(any_draw());
    } else if (dice < 33) {
      engine_.scheduler.abort(any_draw(), static_cast<std::int32_t>(below(4)));
    } else if (dice < 40) {
      engine_.scheduler.preempt(any_draw(), static_cast<std::int32_t>(below(4)));
    } else if (dice < 41) {
      engine_.scheduler.set_weight_version(engine_.scheduler.weight_version() + 1);
    } else if (dice < 43) {
      pause(below(8));
    } else if (dice < 46) {
      engine_.scheduler.resume();
    } else {
      step(dice < 50);
    }
    engine_.scheduler.check_invariants();
    judge();
  }

  // Runs what is left; then nothing may be in use.
  void drain() {
    engine_.scheduler.resume();
    engine_.run();
    judge();
    CHECK(live_.empty());
    CHECK(engine_.scheduler.blocks().num_free() == engine_.scheduler.blocks().num_usable());
    CHECK(num_compared_ > 0);
  }

  std::int64_t num_compared() const { return num_compared_; }
  SchedulerCounters counters() const { return engine_.scheduler.counters(); }

 private:
  struct Live {
    GroupRequest request;
    WeightVersion version;
    int num_ended = 0;
  };

  std::uint64_t below(std::uint64_t n) {
    return random_below({.seed = seed_, .draw = counter_++}, n);
  }

  std::int64_t any_draw() {
    return next_draw_ == 0 ? 0 : next_draw_ - 1 - static_cast<std::int64_t>(below(12));
  }

  // Prompts from a small alphabet whose beginnings repeat, so that prefixes are shared.
  void add() {
    GroupRequest request{.draw = next_draw_++};
    request.num_samples = static_cast<std::int32_t>(1 + below(4));
    request.read_cache = below(8) != 0;
    request.priority = static_cast<std::int32_t>(below(3));
    const std::uint64_t kind = below(3);
    const bool is_long = below(12) == 0;  // up to what fits in the pool
    const std::uint64_t size = 1 + below(static_cast<std::uint64_t>(is_long ? max_prompt_ : 24));
    for (std::uint64_t i = 0; i < size; ++i) {
      request.prompt.push_back(static_cast<TokenId>(i + 3 < size ? (kind + i) % 5 : below(6)));
    }
    request.params.max_new_tokens = static_cast<std::int64_t>(1 + below(9));
    request.params.stop_ids = {5};
    request.params.min_new_tokens =
        static_cast<std::int64_t>(below(static_cast<std::uint64_t>(request.params.max_new_tokens)));
    request.params.seed = below(3);
    request.params.temperature = below(4) == 0 ? 0 : 1;
    request.params.top_k = static_cast<std::int32_t>(below(4));
    request.params.frequency_penalty = below(4) == 0 ? 0.5 : 0.0;
    request.params.num_prompt_logprobs = below(6) == 0 ? 0 : -1;
    live_.emplace(request.draw, Live{request, engine_.scheduler.weight_version()});
    engine_.scheduler.add(std::move(request));
  }

  void pause(std::uint64_t dice) {
    if (dice == 0) {
      engine_.scheduler.pause(PauseMode::kAbort);
    } else if (dice < 4) {
      engine_.scheduler.pause(PauseMode::kWait);
    } else {
      engine_.scheduler.pause(PauseMode::kKeep);
    }
    if (dice > 5) {  // as for a train phase in between
      engine_.scheduler.preempt_all();
      REQUIRE(engine_.scheduler.reset_cache());
    }
  }

  void step(bool abort_inside) {
    const StepPlan plan = engine_.scheduler.schedule();
    const auto tokens = engine_.draw(plan);
    if (abort_inside) {
      engine_.scheduler.abort(any_draw());
    }
    engine_.keep(engine_.scheduler.commit(plan, tokens));
  }

  void judge() {
    for (const auto& [name, ended] : engine_.finished) {
      Live& live = live_.at(name.first);
      if (live.version == engine_.scheduler.weight_version()) {
        const auto expected = engine_.expected_tokens(live.request, name.second);
        REQUIRE(ended.ids.size() <= expected.size());
        REQUIRE(ended.logprobs.size() == ended.ids.size());
        for (std::size_t i = 0; i < ended.ids.size(); ++i) {
          REQUIRE(ended.ids[i] == expected[i].id);
          REQUIRE(ended.logprobs[i] == expected[i].logprob);
        }
        REQUIRE((ended.stop.reason == FinishReason::kAbort || ended.ids.size() == expected.size()));
        ++num_compared_;
      }
      if (++live.num_ended == live.request.num_samples) {
        live_.erase(name.first);
      }
    }
    engine_.finished.clear();
  }

  std::uint64_t seed_;
  std::int64_t max_prompt_;
  std::uint64_t counter_ = 0;
  std::int64_t next_draw_ = 0;
  std::int64_t num_compared_ = 0;
  FakeEngine engine_;
  std::map<std::int64_t, Live> live_;
};

// Operates until the scheduler has planned `num_steps` steps.
void fuzz(std::uint64_t seed, const Shape& shape, std::int64_t num_steps) {
  Fuzzer fuzzer(seed, shape);
  while (fuzzer.counters().steps < num_steps) {
    fuzzer.operate();
  }
  fuzzer.drain();
  const SchedulerCounters counters = fuzzer.counters();
  MESSAGE("seed " << seed << ": " << fuzzer.num_compared() << " samples compared, "
                  << counters.preemptions << " preemptions, " << counters.drafts_accepted << " of "
                  << counters.drafts << " guesses drawn");
  CHECK(counters.preemptions > 0);
  CHECK((counters.drafts_accepted > 0) == (shape.num_drafts > 0));
}

TEST_CASE("ten thousand steps between random operations keep the books and the tokens") {
  fuzz(1, {}, 3000);
  fuzz(2, {.hash_bits = 1}, 2000);
  fuzz(3, {.num_blocks = 12, .num_drafts = 3}, 3000);
  fuzz(4, {.num_blocks = 60, .num_drafts = 5}, 2000);
}

TEST_CASE("a million steps between random operations keep the books and the tokens" *
          doctest::skip()) {
  for (std::uint64_t seed = 10; seed < 20; ++seed) {
    fuzz(seed,
         {.num_blocks = seed % 3 == 0 ? 12 : 40,
          .hash_bits = seed % 2 == 0 ? 128 : 2,
          .num_drafts = static_cast<std::int64_t>(seed % 4)},
         100000);
  }
}

}  // namespace
}  // namespace tandem::rollout
