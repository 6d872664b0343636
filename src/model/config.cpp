#include "model/config.h"

#include <algorithm>

#include "base/error.h"
#include "model/families.h"
#include "model/in_quotes.h"
#include "model/json_fields.h"

namespace tandem::model {
namespace {

// Larger than any model, and small enough that no product of sizes leaves 64 bits.
constexpr std::int64_t kLargestSize = 1 << 24;
constexpr std::int64_t kLargestHeads = 1 << 16;
constexpr std::int64_t kLargestLayers = 10'000;
constexpr std::int64_t kLargestPositions = 1 << 30;

const Family& family_of(const JsonFields& in) {
  const auto model_type = in.text("model_type");
  const auto architectures = in.texts("architectures").value_or(std::vector<std::string>{});
  const Family* family = nullptr;
  std::string named = "(none)";
  if (model_type) {
    named = in_quotes(*model_type);
    family = find_family(*model_type);
  } else if (!architectures.empty()) {
    named = in_quotes(architectures.front());
    family = find_family_by_architecture(architectures.front());
  }
  if (family == nullptr) {
    fail<UserError>("{}: architecture {} is not supported by this version; supported: {}",
                    in.file_name(),
                    named,
                    supported_families());
  }
  return *family;
}

// Settings that change the numbers and that the decoder does not know.
void refuse_unsupported(const JsonFields& in, const Family& family) {
  if (in.has("quantization_config")) {
    fail<UserError>(
        "{}: field 'quantization_config' is set; quantized weights are not supported, "
        "use the model's float checkpoint",
        in.file_name());
  }
  const std::string activation = in.text("hidden_act").value_or("silu");
  if (activation != "silu" && activation != "swish") {
    in.refuse("hidden_act", "only 'silu' is supported");
  }
  if (in.number("partial_rotary_factor").value_or(1.0) != 1.0) {
    in.refuse("partial_rotary_factor", "only rotation of whole heads (1.0) is supported");
  }
  const std::string only = "only qwen2 has biases in this version, on q, k and v";
  if (in.boolean("attention_bias").value_or(false) && !family.qkv_bias) {
    in.refuse("attention_bias", only);
  }
  if (in.boolean("mlp_bias").value_or(false)) {
    in.refuse("mlp_bias", only);
  }
}

void read_sizes(const JsonFields& in, const Family& family, ModelConfig& config) {
  config.hidden_size = in.required_size("hidden_size", kLargestSize);
  config.intermediate_size = in.required_size("intermediate_size", kLargestSize);
  config.num_layers = in.required_size("num_hidden_layers", kLargestLayers);
  config.num_heads = in.required_size("num_attention_heads", kLargestHeads);
  config.num_kv_heads = in.size("num_key_value_heads", kLargestHeads).value_or(config.num_heads);
  config.vocab_size = in.required_size("vocab_size", kLargestSize);
  config.max_positions =
      in.size("max_position_embeddings", kLargestPositions).value_or(family.default_max_positions);
  if (config.num_heads % config.num_kv_heads != 0) {
    in.refuse("num_key_value_heads",
              fmt::format("{} attention heads cannot be shared out evenly", config.num_heads));
  }
  const auto head_dim = in.size("head_dim", kLargestHeads);
  if (!head_dim && family.default_head_dim == 0 && config.hidden_size % config.num_heads != 0) {
    in.refuse("head_dim",
              fmt::format("hidden_size {} is no multiple of num_attention_heads {}",
                          config.hidden_size,
                          config.num_heads));
  }
  const std::int64_t usual = family.default_head_dim != 0 ? family.default_head_dim
                                                          : config.hidden_size / config.num_heads;
  config.head_dim = head_dim.value_or(usual);
  if (config.head_dim % 2 != 0) {
    in.refuse("head_dim", fmt::format("heads of {} cannot be rotated in pairs", config.head_dim));
  }
  config.rms_norm_eps = in.number("rms_norm_eps").value_or(1e-6);
  if (config.rms_norm_eps < 0.0) {
    in.refuse("rms_norm_eps", "expected at least 0");
  }
}

double positive(const JsonFields& in, const std::string& key, std::optional<double> value) {
  if (!value || !(*value > 0.0)) {
    in.refuse(key, "expected a positive number");
  }
  return *value;
}

void read_llama3(const JsonFields& in, const JsonFields& scaling, RopeConfig& rope) {
  rope.type = RopeType::kLlama3;
  rope.factor = positive(scaling, "factor", scaling.number("factor"));
  rope.low_freq_factor = positive(scaling, "low_freq_factor", scaling.number("low_freq_factor"));
  rope.high_freq_factor = positive(scaling, "high_freq_factor", scaling.number("high_freq_factor"));
  if (rope.high_freq_factor <= rope.low_freq_factor) {
    scaling.refuse("high_freq_factor", "expected more than low_freq_factor");
  }
  const std::string key = "original_max_position_embeddings";
  const JsonFields& place = scaling.has(key) ? scaling : in;
  rope.original_max_positions = place.required_size(key, kLargestPositions);
}

// The newer files say `rope_parameters`, with the base inside; the older ones `rope_scaling`, with
// the base beside it. Where both stand, the newer one counts.
RopeConfig read_rope(const JsonFields& in, const Family& family) {
  RopeConfig rope;
  const auto theta = in.number("rope_theta").value_or(family.default_rope_theta);
  rope.theta = positive(in, "rope_theta", theta);
  const std::string key = in.has("rope_parameters") ? "rope_parameters" : "rope_scaling";
  const auto scaling = in.object(key);
  if (!scaling) {
    return rope;
  }
  if (scaling->has("full_attention") || scaling->has("sliding_attention")) {
    in.refuse(key, "another rotation in each kind of layer is not supported by this version");
  }
  rope.theta = positive(*scaling, "rope_theta", scaling->number("rope_theta").value_or(rope.theta));
  if (scaling->number("partial_rotary_factor").value_or(1.0) != 1.0) {
    scaling->refuse("partial_rotary_factor", "only rotation of whole heads (1.0) is supported");
  }
  const std::string type_key = scaling->has("rope_type") ? "rope_type" : "type";
  const std::string type = scaling->text(type_key).value_or("default");
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = positive(*scaling, "factor", scaling->number("factor"));
  } else if (type == "llama3") {
    read_llama3(in, *scaling, rope);
  } else if (type != "default") {
    scaling->refuse(type_key, "not supported by this version; supported: default, linear, llama3");
  }
  return rope;
}

bool has_window(WindowRule rule, const JsonFields& in) {
  return rule == WindowRule::kEveryLayer ||
         (rule == WindowRule::kUpperLayers && in.boolean("use_sliding_window").value_or(false));
}

// The newer files name the kind of every layer.
void read_layer_types(const JsonFields& in, std::int64_t window, ModelConfig& config) {
  const auto types = in.texts("layer_types").value_or(std::vector<std::string>{});
  if (types.size() != config.sliding_window_of_layer.size()) {
    in.refuse("layer_types", fmt::format("expected {} entries, one a layer", config.num_layers));
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (types[i] != "full_attention" && types[i] != "sliding_attention") {
      in.refuse("layer_types", "expected full_attention or sliding_attention for each layer");
    }
    config.sliding_window_of_layer[i] = types[i] == "sliding_attention" ? window : 0;
    if (types[i] == "sliding_attention" && window == 0) {
      in.refuse("sliding_window", "layer_types asks for sliding layers, so it has to be set");
    }
  }
}

void read_windows(const JsonFields& in,
                  const nlohmann::json& root,
                  const Family& family,
                  ModelConfig& config) {
  config.sliding_window_of_layer.assign(static_cast<std::size_t>(config.num_layers), 0);
  if (family.window == WindowRule::kNever) {
    return;
  }
  // Absent is the family's default, but null switches the window off.
  const std::int64_t absent = root.contains("sliding_window") ? 0 : family.default_window;
  const std::int64_t given = in.size("sliding_window", kLargestPositions).value_or(absent);
  const std::int64_t window = has_window(family.window, in) ? given : 0;
  if (in.has("layer_types")) {
    read_layer_types(in, window, config);
    return;
  }
  std::int64_t first = 0;
  if (family.window == WindowRule::kUpperLayers) {
    const auto firsts = in.integers("max_window_layers");
    first = firsts.empty() ? 28 : firsts.front();
  }
  for (std::int64_t i = std::max<std::int64_t>(first, 0); i < config.num_layers; ++i) {
    config.sliding_window_of_layer[static_cast<std::size_t>(i)] = window;
  }
}

// Ids outside the vocabulary (some files say -1 for "none") can neither be sampled nor fed.
void read_token_ids(const JsonFields& in, ModelConfig& config) {
  const auto usable = [&](std::int64_t id) { return id >= 0 && id < config.vocab_size; };
  for (const std::int64_t id : in.integers("eos_token_id")) {
    const auto& known = config.eos_ids;
    if (usable(id) && std::find(known.begin(), known.end(), id) == known.end()) {
      config.eos_ids.push_back(id);
    }
  }
  const auto take = [&](const std::string& key, std::optional<std::int64_t>& target) {
    const auto ids = in.integers(key);
    if (!target && !ids.empty() && usable(ids.front())) {
      target = ids.front();
    }
  };
  take("bos_token_id", config.bos_id);
  take("pad_token_id", config.pad_id);
}

std::string read_dtype(const JsonFields& in) {
  const std::string key = in.has("dtype") ? "dtype" : "torch_dtype";
  const std::string dtype = in.text(key).value_or("float32");
  if (dtype != "float32" && dtype != "bfloat16" && dtype != "float16") {
    in.refuse(key, "supported: float32, bfloat16, float16");
  }
  return dtype;
}

}  // namespace

ModelConfig parse_config(std::string_view json, const std::string& file_name) {
  const nlohmann::json root = parse_json_object(json, file_name);
  const JsonFields in(root, file_name);
  const Family& family = family_of(in);
  refuse_unsupported(in, family);
  ModelConfig config;
  config.family = family.name;
  read_sizes(in, family, config);
  config.tied_embeddings = in.boolean("tie_word_embeddings").value_or(false);
  config.attention_bias = family.qkv_bias;
  config.qk_norm = family.qk_norm;
  config.rope = read_rope(in, family);
  read_windows(in, root, family, config);
  read_token_ids(in, config);
  config.dtype = read_dtype(in);
  config.source_json = json;
  return config;
}

void add_generation_config(ModelConfig& config,
                           std::string_view json,
                           const std::string& file_name) {
  const nlohmann::json root = parse_json_object(json, file_name);
  read_token_ids(JsonFields(root, file_name), config);
}

}  // namespace tandem::model
