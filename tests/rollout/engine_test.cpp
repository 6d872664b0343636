// The engine beside its schedules: seeds, updates, phases, aborts. What schedules must not change
// is in exactness_matrix_test.
#include "rollout/engine.h"

#include <cmath>

#include "support/doctest_torch.h"
#include "support/schedules.h"
#include "support/tiny_model.h"

namespace tandem::rollout {
namespace {

constexpr std::int64_t kNumIds = 1490;

SamplingParams params() {
  SamplingParams params;
  params.max_new_tokens = 12;
  params.stop_ids = {2};
  params.seed = 3;
  return params;
}

TEST_CASE("the samples of a group differ, and another seed gives other samples") {
  const auto tiny = test::random_model();
  const auto samples = test::run_schedule(*tiny.decoder, {}, params(), kNumIds);
  for (std::int64_t draw = 0; draw < test::kScheduleGroups; ++draw) {
    CHECK(samples.at({draw, 0}).ids != samples.at({draw, 1}).ids);
  }
  auto other = params();
  other.seed = 4;
  CHECK_FALSE(test::same_samples(samples, test::run_schedule(*tiny.decoder, {}, other, kNumIds)));
}

TEST_CASE("after an update a prompt misses the cache, and the engine equals a fresh one") {
  auto tiny = test::random_model();
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.num_ids = kNumIds;
  const auto run = [&](Engine& engine) {
    GroupRequest request;
    request.prompt = test::schedule_prompt(3, kNumIds);
    request.params = params();
    engine.add(std::move(request));
    return engine.run().at(0);
  };
  Engine engine(*tiny.decoder, config, nullptr);
  const auto before = run(engine);
  CHECK(run(engine).logprobs == before.logprobs);
  tiny.weights->layers()[0].qkv.value.mul_(1.25);
  tiny.weights->bump();
  engine.enter_train_phase();
  CHECK_THROWS_AS(engine.step(), Error);
  engine.enter_rollout_phase();
  const auto after = run(engine);
  Engine fresh(*tiny.decoder, config, nullptr);
  CHECK(after.logprobs == run(fresh).logprobs);
  CHECK(after.logprobs != before.logprobs);
}

TEST_CASE("with a weight that is not a number samples end in an error, without a token") {
  auto tiny = test::random_model();
  tiny.weights->layers()[1].down.value[3][5] = NAN;
  const auto samples = test::run_schedule(*tiny.decoder, {}, params(), kNumIds);
  REQUIRE(samples.size() == test::kScheduleGroups * test::kScheduleSamples);
  for (const auto& [key, sample] : samples) {
    CHECK(sample.stop.reason == FinishReason::kError);
    CHECK(sample.ids.empty());
    CHECK(sample.logprobs.empty());
  }
}

TEST_CASE("aborted requests are handed out, also when nothing else is left to compute") {
  const auto tiny = test::random_model();
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.num_ids = kNumIds;
  Engine engine(*tiny.decoder, config, nullptr);
  GroupRequest request;
  request.prompt = test::schedule_prompt(2, kNumIds);
  request.num_samples = 2;
  request.params = params();
  engine.add(std::move(request));
  CHECK(engine.scheduler().abort(0));
  const auto ended = engine.run();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].stop.reason == FinishReason::kAbort);
  CHECK_FALSE(engine.has_work());
}

}  // namespace
}  // namespace tandem::rollout
