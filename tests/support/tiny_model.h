// Small models for tests: golden ones from disk, random ones from a config.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/weight_store.h"

namespace tandem::test {

/// Weights and the decoder that runs them.
struct TinyModel {
  std::unique_ptr<model::WeightStore> weights;
  std::unique_ptr<model::Decoder> decoder;
};

inline TinyModel load_model(const std::filesystem::path& folder,
                            at::ScalarType dtype = at::kFloat,
                            std::int64_t max_positions = 512) {
  const auto reader = model::CheckpointReader::open(folder.string());
  TinyModel tiny;
  tiny.weights = std::make_unique<model::WeightStore>(reader.config(), dtype);
  tiny.weights->load([&](const std::string& name) { return reader.read(name); });
  tiny.decoder = std::make_unique<model::Decoder>(*tiny.weights, max_positions);
  return tiny;
}

/// A random two-layer model with grouped heads whose widths are no multiples of the vector width.
inline TinyModel random_model(std::uint64_t seed = 1, at::ScalarType dtype = at::kFloat) {
  model::ModelConfig config;
  config.family = "llama";
  config.hidden_size = 72;
  config.intermediate_size = 176;
  config.num_layers = 2;
  config.num_heads = 6;
  config.num_kv_heads = 2;
  config.head_dim = 12;
  config.vocab_size = 1500;
  config.max_positions = 512;
  config.sliding_window_of_layer = {0, 0};
  config.eos_ids = {2};
  TinyModel tiny;
  tiny.weights = std::make_unique<model::WeightStore>(config, dtype);
  tiny.weights->init_random(seed);
  // Larger weights than a fresh model's, so that every layer matters and distributions have peaks.
  for (const auto& [name, tensor] : tiny.weights->named_tensors()) {
    if (tensor.dim() == 2) {
      tensor.mul_(8);
    }
  }
  tiny.decoder = std::make_unique<model::Decoder>(*tiny.weights, 512);
  return tiny;
}

}  // namespace tandem::test
