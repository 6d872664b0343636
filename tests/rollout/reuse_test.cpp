// A backward pass from what sampling computed gives the bits of one that computes it again.
#include <map>

#include "base/thread_pool.h"
#include "model/activation_tape.h"
#include "rollout/engine.h"
#include "support/doctest_torch.h"
#include "support/tiny_model.h"
#include "trainer/train_step.h"
#include "trainer/weight_update.h"

namespace tandem::rollout {
namespace {

constexpr std::int64_t kIds = 1490;

struct Setting {
  std::int64_t max_batched_tokens = 2048;
  bool recompute = false;  // throws the keys of running sequences away now and then
  std::int64_t tape_rows = 4096;
  bool checkpoint_layers = false;
  bool with_tape = true;
  std::int64_t minibatches = 1;
};

struct Result {
  std::vector<float> gradient;  // first moments
  std::vector<std::vector<TokenId>> ids;
  trainer::TrainStepReport report;
  std::int64_t preemptions = 0;
  bool operator==(const Result& other) const {
    return gradient == other.gradient && ids == other.ids;
  }
};

// Prompts that begin alike, samples that branch off in the middle of a block.
std::vector<Trajectory> sample(Engine& engine, bool recompute) {
  std::map<std::pair<std::int64_t, std::int32_t>, Trajectory> all;
  for (std::int64_t draw = 0; draw < 4; ++draw) {
    GroupRequest request;
    request.draw = draw;
    request.num_samples = 4;
    for (TokenId i = 0; i < 21 + 9 * static_cast<TokenId>(draw); ++i) {
      request.prompt.push_back(i < 18 ? 7 + 3 * i : 100 + 11 * i + static_cast<TokenId>(draw));
    }
    request.params.max_new_tokens = 3 + 5 * draw;
    request.params.ignore_eos = true;
    request.params.seed = 3;
    for (std::int32_t s = 0; s < request.num_samples; ++s) {
      all[{draw, s}].ids = request.prompt;
    }
    engine.add(std::move(request));
  }
  std::vector<FinishedSample> finished;
  for (std::int32_t step = 0; engine.has_work(); ++step) {
    for (auto& ended : engine.step()) {
      finished.push_back(std::move(ended));
    }
    for (std::int64_t draw = 0; recompute && step % 3 == 1 && draw < 4; ++draw) {
      engine.scheduler().preempt(draw, step % 4);
    }
  }
  for (auto& ended : finished) {
    Trajectory& t = all[{ended.draw, ended.sample}];
    t.prompt_length = static_cast<std::int64_t>(t.ids.size());
    t.ids.insert(t.ids.end(), ended.ids.begin(), ended.ids.end());
    t.mask.assign(ended.ids.size(), 1);
    t.logprobs = std::move(ended.logprobs);
    t.kept_rows = std::move(ended.kept_rows);
  }
  std::vector<Trajectory> trajectories;
  for (auto& [key, t] : all) {
    trajectories.push_back(std::move(t));
  }
  return trajectories;
}

Result run(const Setting& setting, at::ScalarType dtype) {
  const auto tiny = test::random_model(5, dtype);
  model::ActivationTape tape(tiny.decoder->config(), dtype, setting.tape_rows);
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.max_batched_tokens = setting.max_batched_tokens;
  config.num_ids = kIds;
  config.tape = setting.with_tape ? &tape : nullptr;
  Engine engine(*tiny.decoder, config, nullptr);
  trainer::AdamW optimizer({}, trainer::optimizer_parameters(*tiny.weights));
  trainer::PolicyTrainer trainer(*tiny.decoder,
                                 nullptr,
                                 optimizer,
                                 {.loss = {},
                                  .minibatches = setting.minibatches,
                                  .rows_per_microbatch = 128,
                                  .checkpoint_layers = setting.checkpoint_layers,
                                  .num_ids = kIds,
                                  .tape = config.tape});
  tape.begin(tiny.weights->version());
  const auto trajectories = sample(engine, setting.recompute);
  Result result;
  result.preemptions = engine.scheduler().counters().preemptions;
  engine.enter_train_phase();
  std::vector<trainer::TrainSequence> sequences;
  for (std::size_t i = 0; i < trajectories.size(); ++i) {
    sequences.push_back({&trajectories[i], i % 3 == 0 ? 1.0 : -0.5, false, "sample"});
    result.ids.push_back(trajectories[i].ids);
  }
  result.report = trainer.step(sequences, 0, [](std::int64_t) { return 1e-4; });
  for (const auto& moments : optimizer.moments()) {
    result.gradient.insert(result.gradient.end(), moments.first.begin(), moments.first.end());
  }
  return result;
}

TEST_CASE("gradients from kept activations are the same bits, in both precisions") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    CAPTURE(dtype);
    const Result want = run({.with_tape = false}, dtype);
    CHECK(want.report.num_sampled_rows == 0);
    for (const bool checkpoint : {false, true}) {
      for (const std::int64_t chunk : {2048, 16}) {
        const Result got =
            run({.max_batched_tokens = chunk, .checkpoint_layers = checkpoint}, dtype);
        CHECK(got.report.num_sampled_rows == got.report.num_rows);
        CHECK(got.report.first.logp_gap_max == 0.0);
        CHECK(got.report.num_updates == 1);
        CHECK(got == want);
      }
    }
  }
}

TEST_CASE("rows that were computed again after a preemption count too") {
  const Result want = run({.with_tape = false}, at::kFloat);
  const Result got = run({.recompute = true}, at::kFloat);
  CHECK(got.preemptions > 0);
  CHECK(got.report.num_sampled_rows == got.report.num_rows);
  CHECK(got == want);
}

TEST_CASE("what a full tape has no room for is computed again") {
  const Result want = run({.with_tape = false}, at::kFloat);
  const Result got = run({.tape_rows = 150}, at::kFloat);
  CHECK(got.report.num_sampled_rows < got.report.num_rows);
  CHECK(got == want);
}

TEST_CASE("after an update the rest of the step computes its own activations") {
  const Result want = run({.with_tape = false, .minibatches = 2}, at::kFloat);
  const Result got = run({.minibatches = 2}, at::kFloat);
  CHECK(got.report.num_updates == 2);
  CHECK(got.report.num_sampled_rows > 0);
  CHECK(got.report.num_sampled_rows < got.report.num_rows);
  CHECK(got == want);
}

TEST_CASE("a tape hands out what was put there, and nothing without a beginning") {
  const auto tiny = test::random_model(5);
  model::ActivationTape tape(tiny.decoder->config(), at::kFloat, 8);
  CHECK_FALSE(tape.append(1).has_value());
  tape.begin(3);
  CHECK(tape.append(5) == 0);
  CHECK(tape.append(3) == 5);
  CHECK_FALSE(tape.append(1).has_value());
  const auto y = at::randn({3, 72});
  tape.put(1, model::Product::kDown, 5, y);
  const auto rows = at::tensor({7, 5}, at::kInt);
  CHECK(test::same_bits(tape.take(1, model::Product::kDown, rows),
                        y.index_select(0, at::tensor({2, 0}, at::kLong))));
  CHECK_THROWS(static_cast<void>(tape.take(1, model::Product::kDown, at::tensor({8}, at::kInt))));
  tape.end();
  CHECK_FALSE(tape.append(1).has_value());
}

TEST_CASE("a sample that ends outside of a step is not given the rows of another of its group") {
  const auto tiny = test::random_model(5);
  model::ActivationTape tape(tiny.decoder->config(), at::kFloat, 4096);
  Engine engine(*tiny.decoder, {.kv_bytes = 8 << 20, .num_ids = kIds, .tape = &tape}, nullptr);
  tape.begin(tiny.weights->version());
  GroupRequest request;
  request.num_samples = 2;
  request.prompt = {7, 10, 13, 16, 19};
  request.params.max_new_tokens = 6;
  request.params.ignore_eos = true;
  engine.add(std::move(request));
  for (int step = 0; step < 3; ++step) {
    engine.step();
  }
  REQUIRE(engine.scheduler().preempt(0, 1));
  REQUIRE(engine.scheduler().abort(0, 1));
  std::map<std::int32_t, FinishedSample> ended;
  for (auto& sample : engine.run()) {
    ended[sample.sample] = std::move(sample);
  }
  REQUIRE(ended.size() == 2);
  CHECK(ended[1].ids.size() == 3);
  CHECK(ended[1].kept_rows.empty());
  CHECK(ended[0].kept_rows.size() >= 5 + 6 - 1);
}

}  // namespace
}  // namespace tandem::rollout
