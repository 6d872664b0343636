#include "app/memory_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kFloatBytes = 4;

std::int64_t num_weights(const model::ModelConfig& c) {
  const std::int64_t attention = c.hidden_size * (c.num_heads + 2 * c.num_kv_heads) * c.head_dim +
                                 c.hidden_size * c.num_heads * c.head_dim;
  const std::int64_t per_layer =
      attention + 3 * c.hidden_size * c.intermediate_size + 2 * c.hidden_size;
  const std::int64_t vocabulary = c.vocab_size * c.hidden_size * (c.tied_embeddings ? 1 : 2);
  return vocabulary + c.num_layers * per_layer + c.hidden_size;
}

// Logits and their gradient that are in memory at a time in training.
constexpr std::int64_t kHeadBytes = 2 * (std::int64_t{4} << 20);

// Floats that one layer keeps for one row: inputs of both norms and of the products, queries, keys
// and values before and after their rotation, the attention's output, the gated halves and their
// product. Measured by tests/app/memory_plan_test.cpp.
std::int64_t layer_floats(const model::ModelConfig& c) {
  const std::int64_t qkv = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const std::int64_t raw_qk = c.qk_norm ? (c.num_heads + c.num_kv_heads) * c.head_dim : 0;
  return 4 * c.hidden_size + 2 * qkv + raw_qk + c.num_heads * c.head_dim + c.num_heads +
         3 * c.intermediate_size;
}

// What exists beside it while the layer is running, forward or backward.
std::int64_t transient_floats(const model::ModelConfig& c) {
  return 7 * c.hidden_size + 2 * (c.num_heads + 2 * c.num_kv_heads) * c.head_dim +
         4 * c.intermediate_size;
}

std::int64_t kv_need(const MemoryRequest& r) {
  const auto& c = r.config;
  const std::int64_t per_token =
      2 * c.num_layers * c.num_kv_heads * c.head_dim * r.bytes_per_weight;
  const auto blocks = [&](std::int64_t tokens) {
    return (tokens + r.block_size - 1) / r.block_size;
  };
  // A group: its prompt once, and for each sample its new tokens and a copy of the last block.
  const std::int64_t group =
      blocks(r.max_prompt_tokens) + r.samples_per_prompt * (blocks(r.max_new_tokens) + 1);
  return (r.prompts_per_step * group + 1) * r.block_size * per_token;
}

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:>9.1f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

std::int64_t activation_bytes_per_row(const model::ModelConfig& config, bool checkpoint_layers) {
  const std::int64_t kept = checkpoint_layers
                                ? config.num_layers * config.hidden_size + layer_floats(config)
                                : config.num_layers * layer_floats(config);
  return kFloatBytes * (kept + transient_floats(config));
}

MemoryPlan plan_memory(const MemoryRequest& r) {
  MemoryPlan plan;
  const std::int64_t weights = num_weights(r.config);
  plan.weights = weights * r.bytes_per_weight;
  plan.reference = r.with_reference ? plan.weights : 0;
  plan.optimizer = r.training ? 2 * kFloatBytes * weights : 0;
  plan.gradients = r.training ? kFloatBytes * weights : 0;
  plan.kv = r.kv_bytes > 0 ? r.kv_bytes : kv_need(r);
  const std::int64_t sampling_rows =
      std::min(r.max_batched_tokens,
               r.prompts_per_step * std::max(r.max_prompt_tokens, r.samples_per_prompt));
  plan.workspace =
      kFloatBytes * (sampling_rows * transient_floats(r.config) + 64 * r.config.vocab_size);
  const auto with = [&](bool checkpointing) {
    plan.checkpoint_layers = checkpointing;
    const std::int64_t rows = r.training ? r.rows_per_microbatch : 0;
    plan.activations =
        rows == 0 ? 0 : kHeadBytes + rows * activation_bytes_per_row(r.config, checkpointing);
  };
  with(r.activation_checkpointing == "on");
  if (r.activation_checkpointing == "auto" && plan.train_peak() > r.available_bytes) {
    with(true);
  }
  if (r.kv_bytes == 0) {
    // Fewer sequences at a time take longer, no more: the cache may shrink to what is left.
    const std::int64_t left = r.available_bytes - plan.resident() - plan.workspace;
    plan.kv = std::clamp(plan.kv, std::int64_t{0}, std::max<std::int64_t>(left, 0));
  }
  if (plan.peak() > r.available_bytes || plan.kv <= 0) {
    fail<MachineError>(
        "not enough memory: the peak would be {} MB (weights {}, reference {}, optimizer {}, "
        "gradients "
        "{}, activations {}, kv cache {}, workspace {}), {} MB are available; lower "
        "trainer.tokens_per_microbatch or rollout.kv_bytes",
        plan.peak() / 1'000'000,
        plan.weights / 1'000'000,
        plan.reference / 1'000'000,
        plan.optimizer / 1'000'000,
        plan.gradients / 1'000'000,
        plan.activations / 1'000'000,
        plan.kv / 1'000'000,
        plan.workspace / 1'000'000,
        r.available_bytes / 1'000'000);
  }
  return plan;
}

std::string MemoryPlan::to_text(std::int64_t available_bytes) const {
  std::string text =
      fmt::format("{:<12}{} {}", "weights", megabytes(weights), "shared by trainer and sampler");
  const auto line = [&](const char* name, std::int64_t bytes, const char* note) {
    text += fmt::format("\n{:<12}{} {}", name, megabytes(bytes), note);
  };
  line("reference", reference, "frozen copy for the KL term");
  line("optimizer", optimizer, "");
  line("gradients", gradients, "train phase");
  line("activations",
       activations,
       checkpoint_layers ? "train phase, layers recomputed" : "train phase");
  line("kv cache", kv, "rollout phase");
  line("workspace", workspace, "rollout phase");
  line("peak", peak(), peak() == train_peak() ? "in the train phase" : "in the rollout phase");
  if (available_bytes > 0) {
    line("available", available_bytes, "");
  }
  return text;
}

}  // namespace tandem::app
