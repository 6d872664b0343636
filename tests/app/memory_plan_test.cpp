// The plan against what a training step really takes.
#include "app/memory_plan.h"

#include <fstream>

#include <malloc.h>
#include <sys/resource.h>

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
std::int64_t measured_peak(bool checkpoint_layers, std::int64_t rows) {
  ::malloc_trim(0);
  const std::int64_t before = memory_of("VmRSS");
  std::ofstream("/proc/self/clear_refs") << "5";  // forgets the highest size so far
  model::WeightStore weights(small_config(), at::kFloat);
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
  trainer::sft_step(
      decoder,
      optimizer,
      batch,
      {.rows_per_microbatch = rows, .checkpoint_layers = checkpoint_layers, .num_ids = 4096},
      1e-4);
  return memory_of("VmHWM") - before;
}

TEST_CASE("a training step stays within the plan, and the plan is no more than a tenth above it") {
  for (const bool checkpointing : {false, true}) {
    CAPTURE(checkpointing);
    constexpr std::int64_t kRows = 1024;
    const auto plan = plan_memory(request_of(checkpointing ? "on" : "off", kRows));
    CHECK(plan.checkpoint_layers == checkpointing);
    const auto measured = static_cast<double>(measured_peak(checkpointing, kRows));
    const auto planned = static_cast<double>(plan.train_peak());
    MESSAGE("planned " << planned / 1e6 << " MB, measured " << measured / 1e6 << " MB");
    CHECK(measured < 1.1 * planned);
    CHECK(measured > 0.9 * planned);
  }
}

TEST_CASE("checkpointing is chosen where memory is short, and what cannot fit is refused") {
  auto request = request_of("auto", 4096);
  CHECK_FALSE(plan_memory(request).checkpoint_layers);
  const auto roomy = plan_memory(request_of("off", 4096)).train_peak();
  request.available_bytes = roomy - 1;
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
