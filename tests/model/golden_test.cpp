// Whole models against the numbers of a reference implementation: forward, gradients, AdamW steps.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <nlohmann/json.hpp>

#include <ATen/core/grad_mode.h>

#include "base/atomic_file.h"
#include "kernels/vocab.h"
#include "model/safetensors.h"
#include "support/doctest_torch.h"
#include "support/shared_data.h"
#include "support/tiny_model.h"
#include "trainer/packed_pass.h"
#include "trainer/sft.h"
#include "trainer/weight_update.h"

namespace tandem {
namespace {

using nlohmann::json;

const char* const kModels[] = {
    "llama-tied", "llama3-rope", "mistral", "qwen2", "qwen3", "sharded-qwen3-bf16"};

std::filesystem::path folder_of(const std::string& name) {
  return std::filesystem::path("tests/golden/models") / name;
}

json read_json(const std::filesystem::path& file) {
  return json::parse(read_file(file));
}

const std::vector<AllowedSet>& all_ids() {
  static const std::vector<AllowedSet> kAll;
  return kAll;
}

// Log-probabilities and entropies of ids[1..] given what comes before them.
trainer::PackedPass teacher_forced(const test::TinyModel& tiny, const std::vector<TokenId>& ids) {
  const std::vector<std::uint8_t> wanted(ids.size() - 1, 1);
  const std::vector<trainer::PackSequence> packs = {
      {.ids = ids, .prompt_length = 1, .wanted = wanted}};
  const std::vector<const std::vector<AllowedSet>*> allowed = {&all_ids()};
  return trainer::PackedPass(
      *tiny.decoder, packs, allowed, {.num_ids = tiny.decoder->config().vocab_size});
}

model::RowBatch plain_rows(const std::vector<TokenId>& ids) {
  const auto n = static_cast<std::int64_t>(ids.size());
  model::RowBatch batch;
  batch.ids = at::from_blob(const_cast<TokenId*>(ids.data()), {n}, at::kInt).clone();
  batch.paths.positions = at::arange(n, at::kInt);
  batch.paths.path_start = at::zeros({n}, at::kLong);
  batch.paths.key_slots = at::arange(n, at::kInt);
  return batch;
}

TokenId greedy_next(const test::TinyModel& tiny, const std::vector<TokenId>& ids) {
  const at::NoGradGuard no_grad;
  const auto hidden = tiny.decoder->forward(plain_rows(ids), {});
  const auto logits =
      kernels::logits(hidden.narrow(0, hidden.size(0) - 1, 1), tiny.weights->head());
  return static_cast<TokenId>(logits.argmax(1).item<std::int64_t>());
}

double largest_gap(const std::vector<float>& got, const json& want) {
  REQUIRE(want.size() >= got.size());
  double gap = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    gap = std::max(gap, std::abs(static_cast<double>(got[i]) - want[i].get<double>()));
  }
  return gap;
}

std::vector<trainer::SftExample> golden_batch(const json& forward) {
  std::vector<trainer::SftExample> batch;
  for (const auto& one : forward["cases"]) {
    trainer::SftExample example;
    example.ids = one["input_ids"].get<std::vector<TokenId>>();
    example.mask.assign(example.ids.size() - 1, 1);
    batch.push_back(std::move(example));
  }
  return batch;
}

TEST_CASE("log-probabilities and entropies agree with the reference") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const auto tiny = test::load_model(folder_of(name));
    const auto forward = read_json(folder_of(name) / "forward.json");
    for (const auto& one : forward["cases"]) {
      const auto pass = teacher_forced(tiny, one["input_ids"].get<std::vector<TokenId>>());
      CHECK(largest_gap(pass.logprobs()[0], one["next_logprobs_f64"]) < 5e-5);
      CHECK(largest_gap(pass.entropies()[0], one["entropy_f64"]) < 5e-5);
    }
  }
}

at::Tensor all_logits(const test::TinyModel& tiny, const std::vector<TokenId>& ids) {
  const at::NoGradGuard no_grad;
  return kernels::logits(tiny.decoder->forward(plain_rows(ids), {}), tiny.weights->head());
}

TEST_CASE("logits agree with the reference's of float64") {
  TANDEM_NEEDS_SHARED("golden/models/llama-tied/forward.safetensors");
  for (const std::string name : kModels) {
    CAPTURE(name);
    const auto tiny = test::load_model(folder_of(name));
    const model::SafetensorsFile expected(test::shared_data() / "golden/models" / name /
                                          "forward.safetensors");
    const auto cases = read_json(folder_of(name) / "forward.json")["cases"];
    REQUIRE(cases.size() == 3);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const auto ids = cases[i]["input_ids"].get<std::vector<TokenId>>();
      const auto want = expected.tensor(fmt::format("logits_f64.{}", i));
      CHECK(test::close(all_logits(tiny, ids), want, 0, 5e-5));
    }
  }
}

TEST_CASE("in bfloat16 the log-probabilities are within 0.05 of float32's in the mean") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const auto wide = test::load_model(folder_of(name));
    const auto narrow = test::load_model(folder_of(name), at::kBFloat16);
    double sum = 0;
    std::size_t count = 0;
    const auto forward = read_json(folder_of(name) / "forward.json");
    for (const auto& one : forward["cases"]) {
      const auto ids = one["input_ids"].get<std::vector<TokenId>>();
      const auto want = teacher_forced(wide, ids).logprobs()[0];
      const auto got = teacher_forced(narrow, ids).logprobs()[0];
      for (std::size_t t = 0; t < want.size(); ++t) {
        sum += std::abs(static_cast<double>(got[t]) - want[t]);
      }
      count += want.size();
    }
    const double mean = sum / static_cast<double>(count);
    MESSAGE(name << ": mean difference " << mean);
    CHECK(mean > 0);  // another precision, other numbers
    CHECK(mean < 0.05);
  }
}

TEST_CASE("greedy decoding gives the reference's ids") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    const auto tiny = test::load_model(folder_of(name));
    const auto greedy = read_json(folder_of(name) / "forward.json")["greedy"];
    auto ids = greedy["prompt"].get<std::vector<TokenId>>();
    for (const auto& want : greedy["tokens"]) {
      const TokenId next = greedy_next(tiny, ids);
      CHECK(next == want.get<TokenId>());
      ids.push_back(next);
    }
  }
}

TEST_CASE("both spellings of a config give the same bits") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    auto newer = model::parse_config(read_file(folder_of(name) / "config.json"), "config.json");
    auto classic =
        model::parse_config(read_file(folder_of(name) / "config.v4.json"), "config.v4.json");
    newer.source_json.clear();
    classic.source_json.clear();
    CHECK(newer == classic);
  }
}

void check_gradients(const model::WeightStore& weights, const json& params) {
  const auto gradients = weights.named_gradients();
  CHECK(gradients.size() == params.size());
  for (const auto& [name, grad] : gradients) {
    CAPTURE(name);
    const auto& want = params.at(name);
    const double norm = want["l2_f64"].get<double>();
    CHECK(std::abs(grad.norm().item<double>() - norm) <= 2e-5 * norm + 1e-9);
    const auto flat = grad.flatten();
    for (std::size_t i = 0; i < want["index"].size(); ++i) {
      const double got = flat[want["index"][i].get<std::int64_t>()].item<double>();
      CHECK(std::abs(got - want["grad_f64"][i].get<double>()) <= 2e-5 * norm + 1e-8);
    }
  }
}

TEST_CASE(
    "gradients of the mean log-likelihood agree with the reference, with and without "
    "checkpointing") {
  for (const std::string name : kModels) {
    for (const bool checkpointing : {false, true}) {
      CAPTURE(name);
      CAPTURE(checkpointing);
      auto tiny = test::load_model(folder_of(name));
      const auto batch = golden_batch(read_json(folder_of(name) / "forward.json"));
      const auto grads = read_json(folder_of(name) / "grads.json");
      std::vector<trainer::PackSequence> packs;
      std::size_t targets = 0;
      for (const auto& example : batch) {
        packs.push_back({.ids = example.ids, .prompt_length = 1, .wanted = example.mask});
        targets += example.mask.size();
      }
      const std::vector<const std::vector<AllowedSet>*> allowed(packs.size(), &all_ids());
      tiny.weights->zero_gradients();
      trainer::PackedPass pass(*tiny.decoder,
                               packs,
                               allowed,
                               {.with_gradient = true,
                                .checkpoint_layers = checkpointing,
                                .num_ids = tiny.decoder->config().vocab_size});
      double loss = 0;
      trainer::TokenValues slopes = pass.logprobs();
      for (auto& sequence : slopes) {
        for (auto& value : sequence) {
          loss -= value / static_cast<double>(targets);
          value = static_cast<float>(-1.0 / static_cast<double>(targets));
        }
      }
      CHECK(std::abs(loss - grads["loss_f64"].get<double>()) < 2e-5);
      pass.backward(slopes, {});
      check_gradients(*tiny.weights, grads["params"]);
    }
  }
}

TEST_CASE("five AdamW steps follow the reference's losses and end at its parameters") {
  for (const std::string name : kModels) {
    CAPTURE(name);
    auto tiny = test::load_model(folder_of(name));
    const auto batch = golden_batch(read_json(folder_of(name) / "forward.json"));
    const auto want = read_json(folder_of(name) / "adamw5.json");
    const trainer::AdamWConfig config = {.beta1 = want["betas"][0].get<double>(),
                                         .beta2 = want["betas"][1].get<double>(),
                                         .epsilon = want["eps"].get<double>(),
                                         .weight_decay = want["weight_decay"].get<double>(),
                                         .max_grad_norm = want["clip_global_norm"].get<double>()};
    trainer::AdamW optimizer(config, trainer::optimizer_parameters(*tiny.weights));
    const trainer::SftConfig sft = {.num_ids = tiny.decoder->config().vocab_size};
    for (std::size_t step = 0; step < 5; ++step) {
      const auto report =
          trainer::sft_step(*tiny.decoder, optimizer, batch, sft, want["lr"].get<double>());
      CHECK(std::abs(report.loss - want["losses_f64"][step].get<double>()) < 2e-5);
      const double norm = want["grad_norm_before_clip_f64"][step].get<double>();
      CHECK(std::abs(report.update.grad_norm - norm) < 2e-5 * norm);
    }
    const auto after = trainer::sft_step(*tiny.decoder, optimizer, batch, sft, 0.0);
    CHECK(std::abs(after.loss - want["losses_f64"][5].get<double>()) < 2e-5);
    const auto params = read_json(folder_of(name) / "grads.json")["params"];
    for (const auto& [tensor_name, tensor] : tiny.weights->named_tensors()) {
      const auto& one = params.at(tensor_name);
      for (std::size_t i = 0; i < one["index"].size(); ++i) {
        const double got = tensor.flatten()[one["index"][i].get<std::int64_t>()].item<double>();
        CHECK(std::abs(got - one["after5_f64"][i].get<double>()) < 5e-4);
      }
    }
  }
}

TEST_CASE("a quantised GGUF gives the reference's logits") {
  TANDEM_NEEDS_SHARED("golden/gguf/llama-tied-q8_0.expected.safetensors");
  const auto golden = test::shared_data() / "golden/gguf";
  const auto tiny = test::load_model("tests/golden/gguf/llama-tied-q8_0.gguf");
  const model::SafetensorsFile expected(golden / "llama-tied-q8_0.expected.safetensors");
  const auto cases = read_json(folder_of("llama-tied") / "forward.json")["cases"];
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto ids = cases[i]["input_ids"].get<std::vector<TokenId>>();
    CHECK(
        test::close(all_logits(tiny, ids), expected.tensor(fmt::format("logits.{}", i)), 0, 5e-5));
  }
}

using IdLogit = std::pair<std::int64_t, double>;

TEST_CASE("stories260K continues its stories like the reference program") {
  TANDEM_NEEDS_SHARED("stories260K/hf");
  const auto tiny = test::load_model(test::shared_data() / "stories260K/hf");
  const auto golden = read_json(test::shared_data() / "golden/stories260K/greedy.json");
  for (const auto& one : golden["cases"]) {
    const auto ids = one["input_ids"].get<std::vector<TokenId>>();
    const auto next = one["next_ids"].get<std::vector<TokenId>>();
    const auto logits = all_logits(tiny, ids);
    const auto best = logits.argmax(1);
    const auto logp = logits.log_softmax(1);
    CHECK(largest_gap(teacher_forced(tiny, ids).entropies()[0], one["entropy"]) < 1e-4);
    for (std::size_t t = 0; t < ids.size(); ++t) {
      const auto row = static_cast<std::int64_t>(t);
      const bool forced =
          t + 1 < ids.size() && ids[t + 1] == next[t] && best[row].item<std::int64_t>() != next[t];
      if (!forced) {
        CHECK(best[row].item<std::int64_t>() == next[t]);
      }
      CHECK(std::abs(logp[row][next[t]].item<double>() - one["next_logprobs"][t].get<double>()) <
            1e-4);
      for (const auto& [id, want] : one["top5_logits"][t].get<std::vector<IdLogit>>()) {
        CHECK(std::abs(logits[row][id].item<double>() - want) < 1e-4);
      }
    }
  }
}

TEST_CASE("the arithmetic-sequence model gives the reference's logits and ids") {
  TANDEM_NEEDS_SHARED("verl-arithmetic-sequence/model");
  const auto tiny = test::load_model(test::shared_data() / "verl-arithmetic-sequence/model");
  const auto golden =
      read_json(test::shared_data() / "golden/verl-arithmetic-sequence/forward.json");
  for (const auto& one : golden["cases"]) {
    auto ids = one["prompt_ids"].get<std::vector<TokenId>>();
    const auto logits = all_logits(tiny, ids)[static_cast<std::int64_t>(ids.size()) - 1];
    for (std::int64_t i = 0; i < logits.size(0); ++i) {
      const double want = one["logits_prompt_last"][static_cast<std::size_t>(i)].get<double>();
      CHECK(std::abs(logits[i].item<double>() - want) < 5e-5);
    }
    for (const auto& want : one["greedy_ids"]) {
      const TokenId next = greedy_next(tiny, ids);
      CHECK(next == want.get<TokenId>());
      ids.push_back(next);
    }
    CHECK(largest_gap(teacher_forced(tiny, ids).logprobs()[0], one["token_logprobs"]) < 5e-5);
  }
}

}  // namespace
}  // namespace tandem
