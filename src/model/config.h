// What a model is: the numbers of its config.json, in one spelling for all families.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::model {

enum class RopeType { kDefault, kLinear, kLlama3 };

/// How positions become angles. Frequencies are made by the decoder.
struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                      // linear and llama3
  double low_freq_factor = 1.0;             // llama3
  double high_freq_factor = 4.0;            // llama3
  std::int64_t original_max_positions = 0;  // llama3

  bool operator==(const RopeConfig&) const = default;
};

struct ModelConfig {
  std::string family;  // "llama", "qwen2", "qwen3" or "mistral"
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_layers = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;  // even; need not be hidden_size / num_heads
  std::int64_t vocab_size = 0;
  std::int64_t max_positions = 0;
  double rms_norm_eps = 1e-6;
  bool tied_embeddings = false;
  bool attention_bias = false;  // of q, k and v
  bool qk_norm = false;         // RMSNorm of each head of q and k before the rotation
  RopeConfig rope;
  std::vector<std::int64_t> sliding_window_of_layer;  // one entry a layer; 0 sees everything
  std::vector<std::int64_t> eos_ids;                  // all of them end a sequence
  std::optional<std::int64_t> bos_id;
  std::optional<std::int64_t> pad_id;
  std::string dtype = "float32";  // "float32", "bfloat16" or "float16": what the file says it holds
  std::string source_json;        // the config as it was read; empty when there was none

  bool operator==(const ModelConfig&) const = default;
};

/// Reads a config.json, in its classic and its newer spelling.
///
/// Throws UserError naming `file_name`, the field and the remedy; another architecture or a
/// setting that would change the numbers and is not supported is refused by name.
ModelConfig parse_config(std::string_view json, const std::string& file_name);

/// Adds the token ids of a generation_config.json: the end-of-sequence ids are united, bos and pad
/// are taken where the config has none. Sampling values are never taken: they are the recipe's.
void add_generation_config(ModelConfig& config,
                           std::string_view json,
                           const std::string& file_name);

/// The config.json of a model that was not read from one (GGUF, random weights), in the classic
/// spelling, which every version of the other tools reads.
std::string to_json(const ModelConfig& config);

/// The config.json to write beside weights of `dtype`: the one that was read with its dtype
/// replaced, or else `to_json`.
std::string to_json_with_dtype(const ModelConfig& config, const std::string& dtype);

}  // namespace tandem::model
