// The engine's promises, bit for bit: what a request gets does not depend on anything around it.
#include "rollout/engine.h"

#include <map>

#include "base/thread_pool.h"
#include "support/doctest_torch.h"
#include "support/tiny_model.h"
#include "trainer/packed_pass.h"

namespace tandem::rollout {
namespace {

struct Setting {
  std::int64_t max_batched_tokens = 2048;
  std::int32_t block_size = 16;
  bool prefix_cache = true;
  bool shuffled = false;
  bool alone = false;      // one request at a time
  bool separate = false;   // a request for each sample instead of forks of one
  bool recompute = false;  // throws the keys of running sequences away now and then
  int threads = 1;
};

using Results = std::map<std::pair<std::int64_t, std::int32_t>, FinishedSample>;

std::vector<TokenId> prompt_of(std::int64_t draw) {
  // Prompts of many lengths, of which some begin alike.
  std::vector<TokenId> ids;
  for (std::int64_t i = 0; i < 5 + 13 * draw; ++i) {
    ids.push_back(static_cast<TokenId>(i < 20 ? 7 + 3 * i : (i * 37 + draw * 11) % 1400));
  }
  return ids;
}

constexpr std::int64_t kGroups = 5;
constexpr std::int32_t kSamples = 3;

std::vector<GroupRequest> requests(const Setting& setting, const SamplingParams& params) {
  std::vector<GroupRequest> all;
  for (std::int64_t draw = 0; draw < kGroups; ++draw) {
    for (std::int32_t s = 0; s < (setting.separate ? kSamples : 1); ++s) {
      GroupRequest request;
      request.draw = draw;
      request.first_sample = s;
      request.num_samples = setting.separate ? 1 : kSamples;
      request.prompt = prompt_of(draw);
      request.params = params;
      all.push_back(std::move(request));
    }
  }
  if (setting.shuffled) {
    std::reverse(all.begin(), all.end());
    std::swap(all[1], all[3]);
  }
  return all;
}

Results generate(model::Decoder& decoder, const Setting& setting, const SamplingParams& params) {
  set_compute_threads(setting.threads);
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.block_size = setting.block_size;
  config.max_batched_tokens = setting.max_batched_tokens;
  config.num_ids = 1490;
  config.prefix_cache = setting.prefix_cache;
  config.check_invariants = true;
  Engine engine(decoder, config, nullptr);
  Results results;
  const auto keep = [&](std::vector<FinishedSample> finished) {
    for (auto& sample : finished) {
      results[{sample.draw, sample.sample}] = std::move(sample);
    }
  };
  for (auto& request : requests(setting, params)) {
    engine.add(std::move(request));
    if (setting.alone) {
      keep(engine.run());
    }
  }
  for (int step = 0; engine.has_work(); ++step) {
    keep(engine.step());
    if (setting.recompute && step % 3 == 1) {
      for (std::int64_t draw = 0; draw < kGroups; ++draw) {
        engine.scheduler().preempt(draw, step % kSamples);
      }
    }
  }
  return results;
}

bool same_results(const Results& a, const Results& b) {
  if (a.size() != b.size()) {
    return false;
  }
  for (const auto& [key, x] : a) {
    const auto found = b.find(key);
    if (found == b.end() || x.ids != found->second.ids ||
        x.logprobs.size() != found->second.logprobs.size() ||
        std::memcmp(x.logprobs.data(),
                    found->second.logprobs.data(),
                    x.logprobs.size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return true;
}

SamplingParams params_of_test() {
  SamplingParams params;
  params.max_new_tokens = 12;
  params.stop_ids = {2};
  params.seed = 3;
  return params;
}

std::vector<std::pair<std::string, Setting>> settings() {
  return {{"chunks of 7", {.max_batched_tokens = 7}},
          {"chunks of 16", {.max_batched_tokens = 16}},
          {"chunks of 64", {.max_batched_tokens = 64}},
          {"blocks of 32", {.block_size = 32}},
          {"no prefix cache", {.prefix_cache = false}},
          {"another order", {.shuffled = true}},
          {"one at a time", {.alone = true}},
          {"a request for each sample", {.separate = true}},
          {"separate, no cache, chunks of 5",
           {.max_batched_tokens = 5, .prefix_cache = false, .separate = true}},
          {"recomputed after preemption", {.recompute = true}},
          {"2 threads", {.threads = 2}},
          {"4 threads, chunks of 11", {.max_batched_tokens = 11, .threads = 4}}};
}

TEST_CASE("ids and log-probabilities are the same bits in every schedule") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto tiny = test::random_model(1, dtype);
    for (const double top_p : {1.0, 0.8}) {
      auto params = params_of_test();
      params.top_p = top_p;
      const auto reference = generate(*tiny.decoder, {}, params);
      REQUIRE(reference.size() == kGroups * kSamples);
      for (const auto& [name, setting] : settings()) {
        CAPTURE(name);
        CAPTURE(top_p);
        CAPTURE(dtype);
        CHECK(same_results(reference, generate(*tiny.decoder, setting, params)));
      }
    }
  }
}

TEST_CASE("the samples of a group differ, and another seed gives other samples") {
  const auto tiny = test::random_model();
  const auto results = generate(*tiny.decoder, {}, params_of_test());
  for (std::int64_t draw = 0; draw < kGroups; ++draw) {
    CHECK(results.at({draw, 0}).ids != results.at({draw, 1}).ids);
  }
  auto other = params_of_test();
  other.seed = 4;
  CHECK_FALSE(same_results(results, generate(*tiny.decoder, {}, other)));
}

// The trainer's log-probabilities of sampled sequences, packed as one tree.
std::map<std::pair<std::int64_t, std::int32_t>, std::vector<float>> packed_logprobs(
    const model::Decoder& decoder, const Results& results, const trainer::PassOptions& options) {
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<trainer::PackSequence> packs;
  std::vector<const std::vector<AllowedSet>*> allowed;
  for (const auto& [key, sample] : results) {
    auto sequence = prompt_of(key.first);
    sequence.insert(sequence.end(), sample.ids.begin(), sample.ids.end());
    ids.push_back(std::move(sequence));
    masks.emplace_back(sample.ids.size(), 1);
    allowed.push_back(&sample.allowed);
  }
  std::size_t i = 0;
  for (const auto& [key, sample] : results) {
    const auto prompt_length = static_cast<std::int64_t>(ids[i].size() - sample.ids.size());
    packs.push_back({.ids = ids[i], .prompt_length = prompt_length, .wanted = masks[i]});
    ++i;
  }
  const trainer::PackedPass pass(decoder, packs, allowed, options);
  std::map<std::pair<std::int64_t, std::int32_t>, std::vector<float>> logprobs;
  i = 0;
  for (const auto& [key, sample] : results) {
    logprobs[key] = pass.logprobs()[i++];
  }
  return logprobs;
}

TEST_CASE("the trainer's log-probability of a sampled token is the sampler's, to the last bit") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto tiny = test::random_model(2, dtype);
    for (const double temperature : {1.0, 0.6, 1.4}) {
      for (const auto& [top_p, top_k] : {std::pair{1.0, 0}, std::pair{0.8, 0}, std::pair{1.0, 5}}) {
        auto params = params_of_test();
        params.temperature = temperature;
        params.top_p = top_p;
        params.top_k = top_k;
        const auto results = generate(*tiny.decoder, {}, params);
        for (const bool with_gradient : {false, true}) {
          const auto logprobs = packed_logprobs(
              *tiny.decoder,
              results,
              {.with_gradient = with_gradient, .temperature = temperature, .num_ids = 1490});
          for (const auto& [key, sample] : results) {
            CHECK(sample.logprobs == logprobs.at(key));
          }
          if (dtype == at::kBFloat16) {
            break;  // training is in float32
          }
        }
      }
    }
  }
}

TEST_CASE("after an update a prompt misses the cache, and the engine equals a fresh one") {
  auto tiny = test::random_model();
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.num_ids = 1490;
  const auto run = [&](Engine& engine) {
    GroupRequest request;
    request.prompt = prompt_of(3);
    request.params = params_of_test();
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

TEST_CASE("aborted requests are handed out, also when nothing else is left to compute") {
  const auto tiny = test::random_model();
  EngineConfig config;
  config.kv_bytes = 8 << 20;
  config.num_ids = 1490;
  Engine engine(*tiny.decoder, config, nullptr);
  GroupRequest request;
  request.prompt = prompt_of(2);
  request.num_samples = 2;
  request.params = params_of_test();
  engine.add(std::move(request));
  CHECK(engine.scheduler().abort(0));
  const auto ended = engine.run();
  REQUIRE(ended.size() == 2);
  CHECK(ended[0].stop.reason == FinishReason::kAbort);
  CHECK_FALSE(engine.has_work());
}

// The negative control: a kernel whose row depends on the batch must make the comparison fail.
TEST_CASE("a product that depends on the number of rows fails the comparison") {
  at::manual_seed(1);
  const auto x = at::randn({33, 72});
  const auto w = at::randn({64, 72});
  const auto batch_dependent = [&](const at::Tensor& rows) {
    const auto half = rows.size(0) > 8 ? 24 : 40;  // splits the sum where the batch says
    return at::matmul(rows.narrow(1, 0, half), w.narrow(1, 0, half).t()) +
           at::matmul(rows.narrow(1, half, 72 - half), w.narrow(1, half, 72 - half).t());
  };
  const auto whole = batch_dependent(x);
  bool same = true;
  for (std::int64_t row = 0; row < x.size(0); ++row) {
    same = same && test::same_bits(whole[row], batch_dependent(x.narrow(0, row, 1))[0]);
  }
  CHECK_FALSE(same);
}

}  // namespace
}  // namespace tandem::rollout
