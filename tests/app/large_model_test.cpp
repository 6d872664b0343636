// A model of Qwen3-0.6B's shape, random weights: one whole step of 2 x 8 within 16 GiB.
#include <fstream>

#include "app/bench/bench_case.h"
#include "app/compute.h"
#include "support/doctest_torch.h"

namespace tandem::app {
namespace {

model::ModelConfig qwen3_shape() {
  model::ModelConfig config;
  config.family = "qwen3";
  config.hidden_size = 1024;
  config.intermediate_size = 3072;
  config.num_layers = 28;
  config.num_heads = 16;
  config.num_kv_heads = 8;
  config.head_dim = 128;
  config.qk_norm = true;
  config.vocab_size = 151'936;
  config.max_positions = 1024;
  config.tied_embeddings = true;
  config.rope.theta = 1e6;
  config.rms_norm_eps = 1e-6;
  config.sliding_window_of_layer.assign(28, 0);
  config.eos_ids = {151'645};
  return config;
}

TEST_CASE("a step of 2 x 8 with 88 + 64 tokens on Qwen3-0.6B's shape stays below 16 GiB") {
  set_up_compute({});
  for (const auto dtype : {at::kBFloat16, at::kFloat}) {
    Session session;
    session.name = "random";
    session.weights = std::make_unique<model::WeightStore>(qwen3_shape(), dtype);
    session.weights->init_random(1);
    session.decoder = std::make_unique<model::Decoder>(*session.weights, 512);
    session.num_ids = 151'669;
    BenchSizes sizes;
    sizes.prompts = 2;
    sizes.samples = 8;
    sizes.prompt_tokens = 88;
    sizes.new_tokens = 64;
    for (const std::string memory : {"low", "auto"}) {
      release_free_memory();
      std::ofstream("/proc/self/clear_refs") << "5";  // forgets the highest size so far
      sizes.memory = memory;
      const auto result = bench_step(session, sizes);
      std::ifstream status("/proc/self/status");
      std::int64_t peak = 0;
      for (std::string word; status >> word;) {
        if (word == "VmHWM:") {
          status >> peak;
        }
      }
      peak *= 1024;
      const double planned = result.figures.at("planned_bytes");
      MESSAGE(session.weights->dtype_name()
              << ", memory " << memory << ": " << peak / 1'000'000 << " MB, " << planned / 1e6
              << " MB planned, " << result.seconds << " s");
      CHECK(result.figures.at("logprob_gap_max") == 0);
      CHECK(peak < std::int64_t{16} << 30);
      CHECK(static_cast<double>(peak) < 1.05 * planned);
    }
  }
}

}  // namespace
}  // namespace tandem::app
