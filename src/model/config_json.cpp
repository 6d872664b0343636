// Writing config.json.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/config.h"
#include "model/families.h"

namespace tandem::model {
namespace {

using nlohmann::ordered_json;

ordered_json optional_id(const std::optional<std::int64_t>& id) {
  return id ? ordered_json(*id) : ordered_json(nullptr);
}

ordered_json eos_json(const std::vector<std::int64_t>& ids) {
  if (ids.empty()) {
    return nullptr;
  }
  return ids.size() == 1 ? ordered_json(ids.front()) : ordered_json(ids);
}

ordered_json rope_scaling(const RopeConfig& rope) {
  if (rope.type == RopeType::kDefault) {
    return nullptr;
  }
  if (rope.type == RopeType::kLinear) {
    return {{"rope_type", "linear"}, {"type", "linear"}, {"factor", rope.factor}};
  }
  return {{"rope_type", "llama3"},
          {"factor", rope.factor},
          {"low_freq_factor", rope.low_freq_factor},
          {"high_freq_factor", rope.high_freq_factor},
          {"original_max_position_embeddings", rope.original_max_positions}};
}

void add_windows(const ModelConfig& config, WindowRule rule, ordered_json& out) {
  const auto& windows = config.sliding_window_of_layer;
  const std::int64_t widest =
      windows.empty() ? 0 : *std::max_element(windows.begin(), windows.end());
  if (rule == WindowRule::kNever) {
    return;
  }
  out["sliding_window"] = widest == 0 ? ordered_json(nullptr) : ordered_json(widest);
  if (rule == WindowRule::kUpperLayers) {
    const auto first = std::find_if(windows.begin(), windows.end(), [](auto w) { return w != 0; });
    out["use_sliding_window"] = widest != 0;
    out["max_window_layers"] = first - windows.begin();
  }
}

}  // namespace

std::string to_json(const ModelConfig& config) {
  const Family* family = find_family(config.family);
  TANDEM_CHECK(family != nullptr, "family {} is not supported", config.family);
  ordered_json out;
  out["architectures"] = ordered_json::array({std::string(family->architecture)});
  out["model_type"] = config.family;
  out["hidden_size"] = config.hidden_size;
  out["intermediate_size"] = config.intermediate_size;
  out["num_hidden_layers"] = config.num_layers;
  out["num_attention_heads"] = config.num_heads;
  out["num_key_value_heads"] = config.num_kv_heads;
  out["head_dim"] = config.head_dim;
  out["vocab_size"] = config.vocab_size;
  out["max_position_embeddings"] = config.max_positions;
  out["hidden_act"] = "silu";
  out["rms_norm_eps"] = config.rms_norm_eps;
  out["rope_theta"] = config.rope.theta;
  out["rope_scaling"] = rope_scaling(config.rope);
  out["tie_word_embeddings"] = config.tied_embeddings;
  add_windows(config, family->window, out);
  out["bos_token_id"] = optional_id(config.bos_id);
  out["eos_token_id"] = eos_json(config.eos_ids);
  out["pad_token_id"] = optional_id(config.pad_id);
  out["torch_dtype"] = config.dtype;
  return out.dump(2) + "\n";
}

std::string to_json_with_dtype(const ModelConfig& config, const std::string& dtype) {
  auto out = ordered_json::parse(config.source_json.empty() ? to_json(config) : config.source_json);
  out[out.contains("dtype") ? "dtype" : "torch_dtype"] = dtype;
  return out.dump(2) + "\n";
}

}  // namespace tandem::model
