#include "app/bench/work.h"

#include "support/doctest_torch.h"

namespace tandem::app {
namespace {

// 2 layers of width 8: products of 8 * (2 * 8 + 2 * 4 + 3 * 16) = 576 parameters each, a head of
// 10 * 8, keys and values of 2 * 4 numbers a layer.
model::ModelConfig small_config() {
  model::ModelConfig config;
  config.hidden_size = 8;
  config.intermediate_size = 16;
  config.num_layers = 2;
  config.num_heads = 2;
  config.num_kv_heads = 1;
  config.head_dim = 4;
  config.vocab_size = 10;
  config.tied_embeddings = true;
  return config;
}

TEST_CASE("the limit that binds decides, stage by stage") {
  const MachineLimits limits = {.fma_gflops = 2, .bf16_dot_gflops = 4, .dram_gb_per_s = 10};
  const Work work = {{.product_flops = 4e9, .attention_flops = 2e9, .bytes = 10e9},
                     {.product_flops = 4e9, .attention_flops = 0, .bytes = 50e9}};
  CHECK(least_seconds(work, 2, limits) == doctest::Approx(3 + 5));
  CHECK(least_seconds(work, 4, limits) == doctest::Approx(2 + 5));
  CHECK(total_of(work).product_flops == 8e9);
  CHECK(total_of(work).bytes == 60e9);
}

TEST_CASE("a forward pass counts rows, keys and the rows whose logits are wanted") {
  const WorkCounter counter(small_config(), at::kFloat);
  const Stage stage = counter.forward({.rows = 5, .keys = 15, .head_rows = 3});
  CHECK(stage.product_flops == 2.0 * (5 * 1152 + 3 * 80));
  CHECK(stage.attention_flops == 15.0 * 2 * 4 * 8);
  CHECK(stage.bytes == 4.0 * (1152 + 80));
  CHECK(counter.forward({.rows = 5, .keys = 15, .head_rows = 0}).bytes == 4.0 * 1152);
}

TEST_CASE("training does three times the forward's arithmetic, the optimizer moves 28 bytes") {
  const WorkCounter fp32(small_config(), at::kFloat);
  const RowCounts rows = {.rows = 5, .keys = 15, .head_rows = 3};
  CHECK(fp32.training(rows, 0).product_flops == 3 * fp32.forward(rows).product_flops);
  CHECK(fp32.training(rows, 0).attention_flops == 3 * fp32.forward(rows).attention_flops);
  CHECK(fp32.training(rows, 1).product_flops == 2 * fp32.forward(rows).product_flops);
  CHECK(fp32.optimizer().bytes == 28.0 * 1232);
  const WorkCounter bf16(small_config(), at::kBFloat16);
  CHECK(bf16.optimizer().bytes == 30.0 * 1232);
  CHECK(bf16.weight_bytes() == 2.0 * 1232);
}

TEST_CASE("what sequences share counts once, and a prompt needs no logits but its last") {
  const std::vector<TokenId> first = {1, 2, 3, 4, 5};
  const std::vector<TokenId> second = {1, 2, 3, 6, 7};
  const std::vector<std::uint8_t> wanted = {1, 1};
  const trainer::PackSequence packs[] = {{.ids = first, .prompt_length = 3, .wanted = wanted},
                                         {.ids = second, .prompt_length = 3, .wanted = wanted}};
  const RowCounts both = count_tree_rows(packs);
  CHECK(both.rows == 3 + 2);  // a last token predicts nothing
  CHECK(both.keys == 1 + 2 + 3 + 4 + 4);
  CHECK(both.head_rows == 1 + 2);
  const RowCounts one = count_tree_rows(std::span(packs).first(1));
  CHECK(one.rows == 4);
  CHECK(one.head_rows == 2);
}

TEST_CASE("a rollout computes a prompt once for its samples, and a stage for each later token") {
  const WorkCounter counter(small_config(), at::kFloat);
  const RolloutSizes sizes = {.prompts = 2, .samples = 3, .prompt_tokens = 4, .new_tokens = 3};
  const Work prefill = counter.prefill(sizes);
  REQUIRE(prefill.size() == 1);
  CHECK(prefill[0].product_flops == 2.0 * (8 * 1152 + 2 * 80));
  CHECK(prefill[0].attention_flops == 20.0 * 2 * 4 * 8);
  const Work decode = counter.decode(sizes);
  REQUIRE(decode.size() == 2);
  CHECK(decode[0].product_flops == 2.0 * 6 * (1152 + 80));
  CHECK(decode[1].attention_flops == 6.0 * 6 * 2 * 4 * 8);
  // Weights, two prompts of 4 and six samples of 2 tokens, 2 layers of 8 numbers each.
  CHECK(decode[1].bytes == 4.0 * (1232 + (8 + 12) * 16));
  CHECK(counter.rollout(sizes).size() == 3);

  const RolloutSizes shared = {
      .prompts = 2, .samples = 3, .prompt_tokens = 4, .new_tokens = 3, .shared_tokens = 2};
  CHECK(counter.prefill(shared)[0].product_flops == 2.0 * (6 * 1152 + 2 * 80));
  CHECK(counter.prefill(shared)[0].attention_flops == (10.0 + 7) * 2 * 4 * 8);
}

TEST_CASE("the limits of this machine are measured") {
  const MachineLimits limits = measure_machine_limits();
  CHECK(limits.fma_gflops > 0);
  CHECK(limits.bf16_dot_gflops >= 0);
  CHECK(limits.dram_gb_per_s > 0);
}

}  // namespace
}  // namespace tandem::app
