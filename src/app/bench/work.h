// The least work of a benchmark, and how long the machine needs for it at best: our own roofline.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <ATen/core/Tensor.h>

#include "app/bench/machine_limits.h"
#include "model/config.h"
#include "trainer/prefix_tree.h"

namespace tandem::app {

/// Work that one stretch of a program has to do: arithmetic and memory traffic can overlap in it,
/// so the slower of the two decides.
struct Stage {
  double product_flops = 0;    // of matrix products with weights
  double attention_flops = 0;  // always fp32
  double bytes = 0;            // to and from DRAM
};
using Work = std::vector<Stage>;

/// Seconds at the machine's limits; `product_gflops` is the limit of the arithmetic that products
/// use.
double least_seconds(const Work& work, double product_gflops, const MachineLimits& limits);

Stage total_of(const Work& work);

/// Rows of a forward pass, what they attend to, and those whose logits are wanted.
struct RowCounts {
  std::int64_t rows = 0;
  std::int64_t keys = 0;  // summed over the rows
  std::int64_t head_rows = 0;
};

/// Rows of the prefix tree of those sequences: what they share counts once.
RowCounts count_tree_rows(std::span<const trainer::PackSequence> sequences);

struct RolloutSizes {
  std::int64_t prompts = 0;
  std::int64_t samples = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t new_tokens = 0;
  std::int64_t shared_tokens = 0;  // that all prompts begin with
};

/// Counts the work of one model. Nothing computed twice is counted twice: no recomputation in the
/// backward pass, no prompt for each of its samples.
class WorkCounter {
 public:
  WorkCounter(const model::ModelConfig& config, at::ScalarType dtype);

  [[nodiscard]] Stage forward(const RowCounts& rows) const;

  /// Forward and backward: a product costs the same again for the gradient of its input, and again
  /// for that of its weight. `sampled` is the part of the rows whose forward pass was kept from
  /// sampling.
  [[nodiscard]] Stage training(const RowCounts& rows, double sampled) const;

  /// AdamW: weight, gradient and both moments are read, all but the gradient written; bfloat16
  /// weights have fp32 masters beside them.
  [[nodiscard]] Stage optimizer() const;

  /// The prompts, then a stage for each position, whose weights and keys are read anew.
  [[nodiscard]] Work prefill(const RolloutSizes& sizes) const;
  [[nodiscard]] Work decode(const RolloutSizes& sizes) const;
  [[nodiscard]] Work rollout(const RolloutSizes& sizes) const;  // both

  [[nodiscard]] double weight_bytes() const;

 private:
  double layer_parameters_ = 0;  // of all layers' products
  double head_parameters_ = 0;
  double all_parameters_ = 0;
  double attention_flops_ = 0;  // of a row and a key, over all layers
  double kv_bytes_ = 0;         // of a token
  double element_bytes_ = 0;
};

}  // namespace tandem::app
