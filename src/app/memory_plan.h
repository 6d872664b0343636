// What a run needs, before it starts: bytes of each part, and the peak over the phases.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "model/config.h"

namespace tandem::app {

struct MemoryRequest {
  model::ModelConfig config;
  std::int64_t bytes_per_weight = 4;
  bool training = true;            // false: only samples, as `eval` does
  bool sampling = true;            // false: only trains, as `sft` does
  bool with_reference = false;     // a frozen copy for the KL term
  std::int64_t program_bytes = 0;  // resident before anything of the below: code, tokenizer, data
  std::int64_t rows_per_microbatch = 0;
  std::int64_t prompts_per_step = 0;
  std::int64_t samples_per_prompt = 0;
  std::int64_t max_prompt_tokens = 0;
  std::int64_t max_new_tokens = 0;
  std::int64_t block_size = 16;
  std::int64_t max_batched_tokens = 2048;
  std::int64_t kv_bytes = 0;                      // 0: as much as one step can use
  std::string activation_checkpointing = "auto";  // auto, on, off
  std::string memory = "auto";                    // auto, low
  bool reuse_activations = false;                 // keep those of sampling for training
  std::int64_t available_bytes = 0;
};

/// All in bytes.
struct MemoryPlan {
  std::int64_t program = 0;
  std::int64_t weights = 0;      // the one copy that trainer and sampler share
  std::int64_t reference = 0;    // a second one, frozen, where the loss has a KL term
  std::int64_t optimizer = 0;    // two float32 moments a weight, and a master where it is bfloat16
  std::int64_t gradients = 0;    // float32; train phase
  std::int64_t activations = 0;  // of one micro-batch; train phase
  std::int64_t sampled = 0;      // activations of sampling, kept for training; both phases
  std::int64_t kv = 0;           // keys and values; rollout phase
  std::int64_t workspace = 0;    // activations and logits of a sampling step; rollout phase
  bool checkpoint_layers = false;
  bool keep_logits = false;   // from forward to backward, within the activations
  bool keep_buffers = false;  // gradients and activations keep their memory in the rollout phase
  std::int64_t rows_per_microbatch = 0;  // what is asked for, or less where memory is to be low
  std::int64_t max_batched_tokens = 0;   // likewise
  std::int64_t sampled_rows = 0;         // room for so many where activations are reused

  [[nodiscard]] std::int64_t resident() const {
    return program + weights + reference + optimizer + sampled;
  }
  [[nodiscard]] std::int64_t rollout_peak() const {
    return resident() + kv +
           (keep_buffers ? gradients + std::max(activations, workspace) : workspace);
  }
  [[nodiscard]] std::int64_t train_peak() const { return resident() + gradients + activations; }
  [[nodiscard]] std::int64_t peak() const { return std::max(rollout_peak(), train_peak()); }

  /// A table for people, one part a line; what is available where that is not 0.
  [[nodiscard]] std::string to_text(std::int64_t available_bytes) const;
};

/// The plan of a training run. With memory "auto", buffers of one phase stay for the next where all
/// fit beside each other, and logits are kept for the backward pass and "auto" checkpointing is off
/// unless the train phase would then need more than is there. With "low" it is on, buffers go back
/// to the system between phases, and micro-batches and sampling steps are small. Throws
/// MachineError, with the sum, when it does not fit.
MemoryPlan plan_memory(const MemoryRequest& request);

}  // namespace tandem::app
