// A real pretrained model against the numbers of a reference implementation, where its file is:
// scripts/fetch_model.sh smollm2 gets it.
#include <cmath>
#include <filesystem>
#include <tuple>

#include <nlohmann/json.hpp>

#include <ATen/core/grad_mode.h>

#include "base/atomic_file.h"
#include "base/thread_pool.h"
#include "kernels/vocab.h"
#include "rollout/engine.h"
#include "support/doctest_torch.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"
#include "trainer/packed_pass.h"

namespace tandem::rollout {
namespace {

const std::filesystem::path kFile = "models/SmolLM2-135M-Instruct.Q4_1.gguf";

double largest_gap(const std::vector<float>& got, const nlohmann::json& want) {
  REQUIRE(want.size() >= got.size());
  double gap = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    gap = std::max(gap, std::abs(static_cast<double>(got[i]) - want[i].get<double>()));
  }
  return gap;
}

using IdLogit = std::tuple<std::int64_t, double, double>;  // id, logit, log-probability

// The logits behind the last of `ids`, at the ids that the reference ranks highest.
void check_last_logits(const test::TinyModel& tiny,
                       const std::vector<TokenId>& ids,
                       const nlohmann::json& golden) {
  const at::NoGradGuard no_grad;
  const auto n = static_cast<std::int64_t>(ids.size());
  model::RowBatch batch;
  batch.ids = at::tensor(ids, at::kInt);
  batch.paths.positions = at::arange(n, at::kInt);
  batch.paths.path_start = at::zeros({n}, at::kLong);
  batch.paths.key_slots = at::arange(n, at::kInt);
  const auto hidden = tiny.decoder->forward(batch, {});
  const auto logits = kernels::logits(hidden.narrow(0, n - 1, 1), tiny.weights->head())[0];
  for (const auto& [id, logit, logprob] : golden["last_top20"].get<std::vector<IdLogit>>()) {
    CHECK(std::abs(logits[id].item<double>() - logit) < 5e-4);
  }
  const double total = logits.to(at::kDouble).logsumexp(0).item<double>();
  CHECK(std::abs(total - golden["last_logsumexp"].get<double>()) < 5e-4);
}

TEST_CASE("SmolLM2: logits, log-probabilities, entropies and 64 greedy tokens of eight prompts") {
  TANDEM_NEEDS_SHARED("golden/smollm2/prompts.json");
  if (!std::filesystem::exists(kFile)) {
    MESSAGE("skipped: no " << kFile.string() << "; scripts/fetch_model.sh smollm2 gets it");
    return;
  }
  set_compute_threads(2);
  const auto tiny = test::load_model(kFile, at::kFloat, 512);
  const auto golden = nlohmann::json::parse(
      read_file(test::shared_data() / "golden/smollm2/prompts.json"))["prompts"];
  const std::int64_t num_ids = tiny.decoder->config().vocab_size;
  EngineConfig config;
  config.kv_bytes = 512 << 20;
  config.num_ids = num_ids;
  Engine engine(*tiny.decoder, config, nullptr);
  for (std::size_t i = 0; i < golden.size(); ++i) {
    const auto& one = golden[i]["fp32"];
    const auto ids = one["input_ids"].get<std::vector<TokenId>>();
    const std::vector<std::uint8_t> wanted(ids.size() - 1, 1);
    const std::vector<trainer::PackSequence> packs = {
        {.ids = ids, .prompt_length = 1, .wanted = wanted}};
    const std::vector<AllowedSet> all;
    const std::vector<const std::vector<AllowedSet>*> allowed = {&all};
    const trainer::PackedPass pass(*tiny.decoder, packs, allowed, {.num_ids = num_ids});
    CHECK(largest_gap(pass.logprobs()[0], one["next_logprobs"]) < 2e-4);
    CHECK(largest_gap(pass.entropies()[0], one["entropy"]) < 5e-4);
    check_last_logits(tiny, ids, one);
    GroupRequest request;
    request.draw = static_cast<std::int64_t>(i);
    request.prompt = ids;
    request.params.temperature = 0;
    request.params.max_new_tokens = 64;
    request.params.ignore_eos = true;
    engine.add(std::move(request));
  }
  for (const auto& sample : engine.run()) {
    const auto& greedy = golden[static_cast<std::size_t>(sample.draw)]["fp32"]["greedy"];
    CHECK(sample.ids == greedy["tokens"].get<std::vector<TokenId>>());
    CHECK(largest_gap(sample.logprobs, greedy["logprobs"]) < 5e-4);
  }
}

}  // namespace
}  // namespace tandem::rollout
