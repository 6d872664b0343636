// The plan against what a training step really takes.
#include "app/memory_plan.h"

#include <fstream>

#include <sys/resource.h>

#include "app/compute.h"
#include "base/counter_rng.h"
#include "base/error.h"
#include "model/decoder.h"
#include "support/doctest_torch.h"
#include "trainer/sft.h"
#include "trainer/weight_update.h"

namespace tandem::app {
namespace {

model::ModelConfig small_config() {
  model::ModelConfig config;
  config.family = "llama";
  config.hidden_size = 384;
  config.intermediate_size = 1024;
  config.num_layers = 12;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 64;
  config.vocab_size = 4096;
  config.max_positions = 1024;
  config.tied_embeddings = true;
  config.sliding_window_of_layer.assign(12, 0);
  return config;
}

MemoryRequest request_of(const std::string& checkpointing, std::int64_t rows) {
  MemoryRequest request;
  request.config = small_config();
  request.rows_per_microbatch = rows;
  request.prompts_per_step = 4;
  request.samples_per_prompt = 4;
  request.max_prompt_tokens = 64;
  request.max_new_tokens = 64;
  request.activation_checkpointing = checkpointing;
  request.available_bytes = std::int64_t{16} << 30;
  return request;
}

// Bytes from "VmHWM" or "VmRSS" of /proc/self/status.
std::int64_t memory_of(const std::string& key) {
  std::ifstream in("/proc/self/status");
  for (std::string word; in >> word;) {
    std::int64_t kilobytes = 0;
    if (word == key + ":" && in >> kilobytes) {
      return kilobytes * 1024;
    }
  }
  return 0;
}

// The highest resident size of one update over what was there before it.
std::int64_t measured_peak(at::ScalarType dtype, const MemoryPlan& plan, std::int64_t rows) {
  release_free_memory();
  const std::int64_t before = memory_of("VmRSS");
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets the highest size so far
  model::WeightStore weights(small_config(), dtype);
  weights.init_random(1);
  model::Decoder decoder(weights, 1024);
  trainer::AdamW optimizer({}, trainer::optimizer_parameters(weights));
  std::vector<trainer::SftExample> batch(static_cast<std::size_t>(rows / 256));
  for (std::size_t s = 0; s < batch.size(); ++s) {
    for (std::uint32_t i = 0; i < 257; ++i) {
      const RandomKey key = {.draw = s, .position = i, .purpose = RandomPurpose::kMakeData};
      batch[s].ids.push_back(static_cast<TokenId>(random_below(key, 4096)));
    }
    batch[s].mask.assign(256, 1);
  }
  trainer::sft_step(decoder,
                    optimizer,
                    batch,
                    {.rows_per_microbatch = rows,
                     .checkpoint_layers = plan.checkpoint_layers,
                     .keep_logits = plan.keep_logits,
                     .num_ids = 4096},
                    1e-4);
  return memory_of("VmHWM") - before;
}

TEST_CASE("the plan is within a twentieth of what a training step takes, in both precisions") {
  set_up_compute({});
  measured_peak(at::kFloat, plan_memory(request_of("off", 256)), 256);  // what is taken only once
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool checkpointing : {false, true}) {
      CAPTURE(dtype);
      CAPTURE(checkpointing);
      constexpr std::int64_t kRows = 1024;
      auto request = request_of(checkpointing ? "on" : "off", kRows);
      request.bytes_per_weight = dtype == at::kFloat ? 4 : 2;
      const auto plan = plan_memory(request);
      CHECK(plan.checkpoint_layers == checkpointing);
      const auto measured = static_cast<double>(measured_peak(dtype, plan, kRows));
      const auto planned = static_cast<double>(plan.train_peak());
      MESSAGE("planned " << planned / 1e6 << " MB, measured " << measured / 1e6 << " MB");
      CHECK(measured < 1.05 * planned);
      CHECK(measured > 0.95 * planned);
    }
  }
}

TEST_CASE("bfloat16 halves weights and cache and adds a master to the optimizer") {
  auto request = request_of("off", 1024);
  const auto full = plan_memory(request);
  request.bytes_per_weight = 2;
  const auto half = plan_memory(request);
  CHECK(2 * half.weights == full.weights);
  CHECK(2 * half.kv == full.kv);
  CHECK(half.optimizer == full.optimizer * 3 / 2);
  CHECK(half.gradients == full.gradients);
}

TEST_CASE("low memory: layers recomputed, small micro-batches, nothing kept between the phases") {
  auto request = request_of("auto", 4096);
  request.prompts_per_step = 32;
  const auto roomy = plan_memory(request);
  CHECK(roomy.keep_buffers);
  CHECK(roomy.rows_per_microbatch == 4096);
  CHECK(roomy.rollout_peak() >= roomy.resident() + roomy.kv + roomy.gradients + roomy.activations);
  request.memory = "low";
  const auto low = plan_memory(request);
  CHECK(low.checkpoint_layers);
  CHECK_FALSE(low.keep_buffers);
  CHECK(low.rows_per_microbatch == 512);
  CHECK(low.activations < roomy.activations / 10);
  CHECK(low.workspace < roomy.workspace);
  CHECK(low.rollout_peak() == low.resident() + low.kv + low.workspace);
  request.max_prompt_tokens = 900;  // a sequence must fit, and no more than was asked for
  CHECK(plan_memory(request).rows_per_microbatch == 964);
  request.activation_checkpointing = "off";
  CHECK_FALSE(plan_memory(request).checkpoint_layers);
}

TEST_CASE("buffers are kept only where all phases fit beside each other") {
  auto request = request_of("off", 1024);
  const auto plan = plan_memory(request);
  request.available_bytes = plan.rollout_peak() - 1;
  const auto tight = plan_memory(request);
  CHECK_FALSE(tight.keep_buffers);
  CHECK(tight.peak() <= request.available_bytes);
}

TEST_CASE("a step with few tokens is planned for those, and training alone needs no cache") {
  auto request = request_of("off", 4096);
  const auto plan = plan_memory(request);  // 4 x (64 + 4 x 64) = 1280 rows
  request.rows_per_microbatch = 1280;
  CHECK(plan_memory(request).activations == plan.activations);
  request.sampling = false;
  CHECK(plan_memory(request).kv == 0);
  CHECK(plan_memory(request).workspace == 0);
}

TEST_CASE("checkpointing is chosen where memory is short, and what cannot fit is refused") {
  auto request = request_of("auto", 4096);
  CHECK_FALSE(plan_memory(request).checkpoint_layers);
  const auto roomy = plan_memory(request_of("off", 4096));
  CHECK(roomy.keep_logits);
  request.available_bytes = roomy.train_peak() - 1;
  CHECK_FALSE(plan_memory(request).keep_logits);
  CHECK_FALSE(plan_memory(request).checkpoint_layers);
  request.available_bytes = plan_memory(request).train_peak() - 1;
  CHECK(plan_memory(request).checkpoint_layers);
  request.available_bytes = 100'000'000;
  CHECK_THROWS_AS(plan_memory(request), MachineError);
}

TEST_CASE("sampling alone plans neither gradients nor optimizer") {
  auto request = request_of("auto", 4096);
  request.training = false;
  const auto plan = plan_memory(request);
  CHECK(plan.optimizer == 0);
  CHECK(plan.train_peak() == plan.weights);
}

}  // namespace
}  // namespace tandem::app
