// The cache's memory between sampling and training: given back, retaken, and never read in between.
#include <fstream>
#include <string>

#include <unistd.h>

#include "rollout/engine.h"
#include "support/doctest_torch.h"
#include "support/tiny_model.h"
#include "trainer/weight_update.h"

namespace tandem::rollout {
namespace {

std::int64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t total = 0;
  std::int64_t resident = 0;
  statm >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

EngineConfig config_of(std::int64_t kv_bytes) {
  EngineConfig config;
  config.kv_bytes = kv_bytes;
  config.num_ids = 1490;
  config.check_invariants = true;
  return config;
}

GroupRequest request_of(std::int64_t num_tokens) {
  GroupRequest request;
  for (std::int64_t i = 0; i < 400; ++i) {
    request.prompt.push_back(static_cast<TokenId>((i * 37) % 1400));
  }
  request.num_samples = 4;
  request.params.max_new_tokens = num_tokens;
  request.params.seed = 2;
  return request;
}

TEST_CASE("over fifty switches the results are the same and resident memory stays flat") {
  const auto tiny = test::random_model();
  Engine engine(*tiny.decoder, config_of(64 << 20), nullptr);
  std::vector<float> first;
  std::int64_t after_two = 0;
  for (int i = 0; i < 50; ++i) {
    engine.add(request_of(6));
    const auto ended = engine.run();
    REQUIRE(ended.size() == 4);
    if (i == 0) {
      first = ended[0].logprobs;
    }
    CHECK(ended[0].logprobs == first);
    engine.enter_train_phase();
    engine.enter_rollout_phase();
    after_two = i == 1 ? resident_bytes() : after_two;
  }
  CHECK(resident_bytes() < after_two + after_two / 100);
}

TEST_CASE("the train phase gets the pages: resident memory falls by what was written") {
  KvArena arena({.num_slots = 4096, .num_layers = 2, .num_kv_heads = 4, .head_dim = 64});
  REQUIRE(arena.bytes() == 16 << 20);
  const std::int64_t before = resident_bytes();
  for (auto* side : {&arena.cache().k, &arena.cache().v}) {
    for (auto& tensor : *side) {
      tensor.fill_(1.0F);
    }
  }
  const std::int64_t written = resident_bytes();
  CHECK(written - before > 15 << 20);
  arena.release();
  CHECK(written - resident_bytes() > 15 << 20);
}

TEST_CASE("the engine's train phase gives back the pages that its requests wrote") {
  const auto tiny = test::random_model();
  Engine engine(*tiny.decoder, config_of(8 << 20), nullptr);
  for (std::int64_t draw = 0; draw < 30; ++draw) {  // 384 bytes a token: 5.5 MB in all
    GroupRequest request;
    request.draw = draw;
    request.prompt.assign(480, static_cast<TokenId>(draw + 3));
    request.params.max_new_tokens = 2;
    engine.add(std::move(request));
  }
  engine.run();
  const std::int64_t sampled = resident_bytes();
  engine.enter_train_phase();
  CHECK(sampled - resident_bytes() > 4 << 20);
}

template <class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST_CASE("in the rollout phase the weights cannot be updated or loaded, and the error names it") {
  const auto tiny = test::random_model();
  auto& weights = *tiny.weights;
  weights.zero_gradients();
  trainer::AdamW optimizer({}, trainer::optimizer_parameters(weights));
  const auto update = [&] { trainer::update_weights(weights, optimizer, 1e-3); };
  update();
  {
    Engine engine(*tiny.decoder, config_of(8 << 20), nullptr);
    const auto version = weights.version();
    CHECK(message_of(update) ==
          "a weight update needs the train phase, the process is in the rollout phase");
    CHECK_THROWS_AS(weights.load([](const std::string&) { return at::Tensor(); }), Error);
    CHECK(weights.version() == version);
    engine.enter_train_phase();
    update();
    CHECK(weights.version() == version + 1);
    engine.enter_rollout_phase();
    CHECK_THROWS_AS(update(), Error);
  }
  update();  // there is no engine any more
}

TEST_CASE("weights that changed without a switch of phases are not sampled from: no stale keys") {
  const auto tiny = test::random_model();
  Engine engine(*tiny.decoder, config_of(8 << 20), nullptr);
  engine.add(request_of(3));
  engine.run();
  tiny.weights->bump();
  engine.add(request_of(3));
  const auto message = message_of([&] { engine.step(); });
  CAPTURE(message);
  CHECK(message.find("call enter_rollout_phase()") != std::string::npos);
  engine.enter_rollout_phase();
  CHECK(engine.run().size() == 4);
}

TEST_CASE("in the train phase nothing can be sampled, and the error names the phase") {
  const auto tiny = test::random_model();
  Engine engine(*tiny.decoder, config_of(8 << 20), nullptr);
  engine.add(request_of(3));
  CHECK_THROWS_AS(engine.enter_train_phase(), Error);  // requests are running
  engine.run();
  engine.enter_train_phase();
  engine.add(request_of(3));
  const auto message = message_of([&] { engine.step(); });
  CAPTURE(message);
  CHECK(message.find("train") != std::string::npos);
  engine.enter_rollout_phase();
  CHECK(engine.run().size() == 4);
}

TEST_CASE("paused requests survive a train phase, with new weights and the versions they saw") {
  auto tiny = test::random_model();
  Engine engine(*tiny.decoder, config_of(8 << 20), nullptr);
  const auto version = tiny.weights->version();
  engine.add(request_of(6));
  engine.step();
  engine.step();
  engine.scheduler().pause(PauseMode::kKeep);
  engine.enter_train_phase();
  tiny.weights->bump();
  engine.enter_rollout_phase();
  CHECK(engine.run().empty());  // still paused
  engine.scheduler().resume();
  const auto ended = engine.run();
  REQUIRE(ended.size() == 4);
  for (const auto& sample : ended) {
    REQUIRE(sample.versions.size() == 6);
    CHECK(sample.versions[1] == version);
    CHECK(sample.versions[2] == version + 1);
  }
  // The weights are the same numbers, so that the tokens are those of a run without the pause.
  Engine fresh(*tiny.decoder, config_of(8 << 20), nullptr);
  fresh.add(request_of(6));
  for (const auto& sample : fresh.run()) {
    const auto same = [&](const auto& other) {
      return other.sample == sample.sample && other.ids == sample.ids &&
             other.logprobs == sample.logprobs;
    };
    CHECK(std::ranges::any_of(ended, same));
  }
}

}  // namespace
}  // namespace tandem::rollout
