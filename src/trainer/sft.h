// Supervised fine-tuning on the same stack: the likelihood of given completions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "protocol/trajectory.h"
#include "trainer/optimizer.h"

namespace tandem::trainer {

struct SftExample {
  std::vector<TokenId> ids;
  std::int64_t prompt_length = 1;  // ids before it are given; at least 1
  std::vector<std::uint8_t> mask;  // an entry a completion id: 1 where it is a target
  std::string label;
};

struct SftConfig {
  std::int64_t rows_per_microbatch = 4096;
  bool checkpoint_layers = false;
  bool keep_logits = false;     // for backward, instead of computing them again
  bool keep_gradients = false;  // their memory, for the next step
  std::int64_t num_ids = 0;
};

struct SftReport {
  double loss = 0;  // -sum of log p over the targets / number of targets, before the update
  std::int64_t num_targets = 0;
  OptimizerStep update;
};

/// One update on a batch. The denominator counts the targets of the whole batch, so micro-batches
/// do not change it. Without a target nothing happens.
SftReport sft_step(model::Decoder& decoder,
                   AdamW& optimizer,
                   std::span<const SftExample> batch,
                   const SftConfig& config,
                   double learning_rate);

}  // namespace tandem::trainer
