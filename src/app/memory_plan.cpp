#include "app/memory_plan.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "model/activation_tape.h"

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

// Rows of a micro-batch and of a sampling step where memory is to be low: enough for the products
// to run at full speed.
constexpr std::int64_t kLowTrainingRows = 512;
constexpr std::int64_t kLowSamplingRows = 512;

// The kernels' own memory, and what an allocator on large pages leaves between tensors.
constexpr std::int64_t kScratchBytes = 16'000'000;

// Rows of logits that the engine holds at once.
constexpr std::int64_t kLogitRows = 64;

// Logits and their gradient that are in memory at a time in training.
constexpr std::int64_t kHeadBytes = 2 * (std::int64_t{4} << 20);

// Elements that one layer keeps for one row, in working precision: inputs of both norms and of the
// products, queries, keys and values, the attention's output, the gated halves and their product.
// Measured by tests/app/memory_plan_test.cpp.
std::int64_t layer_elements(const model::ModelConfig& c) {
  const std::int64_t qkv = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  const std::int64_t raw_qk = c.qk_norm ? (c.num_heads + c.num_kv_heads) * c.head_dim : 0;
  return 4 * c.hidden_size + qkv + raw_qk + c.num_heads * c.head_dim + 3 * c.intermediate_size;
}

// Floats beside them, in any precision: the attention's sums and the norms' scales.
std::int64_t layer_floats(const model::ModelConfig& c) {
  return c.num_heads + 2 + (c.qk_norm ? c.num_heads + c.num_kv_heads : 0);
}

// What exists beside it while the layer is running, forward or backward.
std::int64_t transient_elements(const model::ModelConfig& c) {
  return 7 * c.hidden_size + 2 * (c.num_heads + 2 * c.num_kv_heads) * c.head_dim +
         4 * c.intermediate_size;
}

std::int64_t activation_bytes_per_row(const MemoryRequest& r, bool checkpoint_layers) {
  const auto& c = r.config;
  const std::int64_t layer = r.bytes_per_weight * layer_elements(c) + kFloatBytes * layer_floats(c);
  const std::int64_t kept = checkpoint_layers
                                ? r.bytes_per_weight * c.num_layers * c.hidden_size + layer
                                : c.num_layers * layer;
  return kept + r.bytes_per_weight * transient_elements(c);
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

using Parts = std::vector<std::pair<const char*, std::int64_t>>;

Parts parts_of(const MemoryPlan& plan) {
  return {{"program", plan.program},
          {"weights", plan.weights},
          {"reference", plan.reference},
          {"optimizer", plan.optimizer},
          {"gradients", plan.gradients},
          {"activations", plan.activations},
          {"sampled", plan.sampled},
          {"kv cache", plan.kv},
          {"workspace", plan.workspace}};
}

std::string megabytes(std::int64_t bytes) {
  return fmt::format("{:>9.1f} MB", static_cast<double>(bytes) / 1e6);
}

// Logits of so many rows, or the block of them that is in memory at a time.
std::int64_t head_bytes(const MemoryRequest& r, std::int64_t kept_rows) {
  return std::max(kHeadBytes, kFloatBytes * kept_rows * r.config.vocab_size);
}

// All rows that a step can have.
std::int64_t rows_of_step(const MemoryRequest& r) {
  return r.prompts_per_step * (r.max_prompt_tokens + r.samples_per_prompt * r.max_new_tokens);
}

// With low memory: as small as the longest sequence allows, but worth a product's while.
std::int64_t small_microbatch(const MemoryRequest& r) {
  const std::int64_t longest = r.max_prompt_tokens + r.max_new_tokens;
  return std::min(r.rows_per_microbatch, std::max(longest, kLowTrainingRows));
}

std::int64_t workspace_bytes(const MemoryRequest& r, std::int64_t max_rows) {
  const std::int64_t rows =
      std::min(max_rows, r.prompts_per_step * std::max(r.max_prompt_tokens, r.samples_per_prompt));
  return r.bytes_per_weight * rows * transient_elements(r.config) +
         kFloatBytes * kLogitRows * r.config.vocab_size;
}

[[noreturn]] void refuse(const MemoryPlan& plan, const MemoryRequest& r) {
  std::string parts;
  for (const auto& [name, bytes] : parts_of(plan)) {
    parts += fmt::format("{}{} {}", parts.empty() ? "" : ", ", name, bytes / 1'000'000);
  }
  fail<MachineError>(
      "not enough memory: the peak would be {} MB ({}), {} MB are available; {}lower "
      "trainer.tokens_per_microbatch or rollout.kv_bytes",
      plan.peak() / 1'000'000,
      parts,
      r.available_bytes / 1'000'000,
      r.memory == "low" ? "" : "set trainer.memory: low, or ");
}

// Chooses what is kept for the backward pass: all that fits, the logits being the first to go.
void plan_activations(const MemoryRequest& r, MemoryPlan& plan) {
  if (r.training && r.sampling && r.reuse_activations) {
    plan.sampled_rows = rows_of_step(r);
    plan.sampled =
        plan.sampled_rows * model::ActivationTape::row_bytes(r.config, r.bytes_per_weight);
  }
  const auto with = [&](bool checkpointing, bool logits) {
    plan.checkpoint_layers = checkpointing;
    plan.keep_logits = r.training && logits;
    const std::int64_t rows = r.training ? std::min(plan.rows_per_microbatch, rows_of_step(r)) : 0;
    plan.activations = rows == 0 ? 0
                                 : kScratchBytes + head_bytes(r, logits ? rows : 0) +
                                       rows * activation_bytes_per_row(r, checkpointing);
    return plan.train_peak() <= r.available_bytes;
  };
  const bool low = r.memory == "low";
  const bool may_choose = r.activation_checkpointing == "auto";
  const bool checkpointing = r.activation_checkpointing == "on" || (may_choose && low);
  if ((low || !with(checkpointing, true)) && !with(checkpointing, false) && may_choose) {
    with(true, false);
  }
}

}  // namespace

MemoryPlan plan_memory(const MemoryRequest& r) {
  const bool low = r.memory == "low";
  MemoryPlan plan;
  const std::int64_t weights = num_weights(r.config);
  plan.program = r.program_bytes;
  plan.weights = weights * r.bytes_per_weight;
  plan.reference = r.with_reference ? plan.weights : 0;
  const std::int64_t master = r.bytes_per_weight < kFloatBytes ? kFloatBytes : 0;
  plan.optimizer = r.training ? (2 * kFloatBytes + master) * weights : 0;
  plan.gradients = r.training ? kFloatBytes * weights : 0;
  if (r.sampling) {
    plan.kv = r.kv_bytes > 0 ? r.kv_bytes : kv_need(r);
  }
  plan.rows_per_microbatch = low ? small_microbatch(r) : r.rows_per_microbatch;
  plan.max_batched_tokens =
      low ? std::min(r.max_batched_tokens, kLowSamplingRows) : r.max_batched_tokens;
  plan.workspace = r.sampling ? workspace_bytes(r, plan.max_batched_tokens) : 0;
  plan_activations(r, plan);
  plan.keep_buffers = r.training && !low;
  plan.keep_buffers = plan.keep_buffers && plan.peak() <= r.available_bytes;
  if (r.kv_bytes == 0) {
    // Fewer sequences at a time take longer, no more: the cache may shrink to what is left.
    const std::int64_t left = r.available_bytes - plan.resident() - plan.workspace;
    plan.kv = std::clamp(plan.kv, std::int64_t{0}, std::max<std::int64_t>(left, 0));
  }
  if (plan.peak() > r.available_bytes || (r.sampling && plan.kv <= 0)) {
    refuse(plan, r);
  }
  return plan;
}

std::string MemoryPlan::to_text(std::int64_t available_bytes) const {
  const std::map<std::string_view, std::string> notes = {
      {"weights", "shared by trainer and sampler"},
      {"reference", "frozen copy for the KL term"},
      {"gradients", keep_buffers ? "kept between phases" : "train phase"},
      {"activations",
       fmt::format("train phase, at most {} rows at a time{}",
                   rows_per_microbatch,
                   checkpoint_layers ? ", layers recomputed" : "")},
      {"sampled", "activations kept from sampling"},
      {"kv cache", "rollout phase"},
      {"workspace", "rollout phase"}};
  std::string text;
  const auto line = [&](const char* name, std::int64_t bytes, const std::string& note) {
    text += fmt::format("{}{:<12}{} {}", text.empty() ? "" : "\n", name, megabytes(bytes), note);
  };
  for (const auto& [name, bytes] : parts_of(*this)) {
    const auto note = notes.find(name);
    line(name, bytes, note == notes.end() ? "" : note->second);
  }
  line("peak",
       peak(),
       train_peak() >= rollout_peak() ? "in the train phase" : "in the rollout phase");
  if (available_bytes > 0) {
    line("available", available_bytes, "");
  }
  return text;
}

}  // namespace tandem::app
