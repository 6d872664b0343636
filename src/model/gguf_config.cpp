// From GGUF metadata to a config.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/families.h"
#include "model/gguf.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

using nlohmann::ordered_json;

[[noreturn]] void refuse(const GgufFile& file, const std::string& problem) {
  fail<UserError>("{}: {}", file.path().string(), problem);
}

std::int64_t required(const GgufFile& file, const std::string& key) {
  const auto value = file.integer(key);
  if (!value) {
    refuse(file, fmt::format("metadata {} is missing; fetch the file again", in_quotes(key)));
  }
  return *value;
}

// Converters store a config's double as a float. The double with the float's shortest decimal form
// is the one that they started from: 1e-5, not 9.999999747e-6.
double float_field(const GgufFile& file, const std::string& key, double absent) {
  const double value = file.number(key).value_or(absent);
  if (!std::isfinite(value)) {
    refuse(file, fmt::format("metadata {} is not finite; fetch the file again", in_quotes(key)));
  }
  const auto narrow = static_cast<float>(value);
  const bool was_float = static_cast<double>(narrow) == value;
  return was_float ? std::strtod(fmt::format("{}", narrow).c_str(), nullptr) : value;
}

// The factors that Llama 3's converter makes out of rope_scaling: frequency j is divided by entry
// j. The released models share all numbers but `factor`.
std::vector<double> llama3_divisors(double theta, double factor, std::int64_t head_dim) {
  constexpr double kLow = 1.0;
  constexpr double kHigh = 4.0;
  constexpr double kOriginal = 8192.0;
  std::vector<double> divisors;
  for (std::int64_t j = 0; j < head_dim / 2; ++j) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(j) / head_dim);
    const double wave = 2.0 * std::numbers::pi / frequency;
    const double blend = std::clamp((kOriginal / wave - kLow) / (kHigh - kLow), 0.0, 1.0);
    divisors.push_back(1.0 / ((1.0 - blend) / factor + blend));
  }
  return divisors;
}

ordered_json llama3_scaling(const GgufFile& file, const GgufTensor& stored, double theta) {
  std::vector<float> divisors(
      static_cast<std::size_t>(stored.shape.size() == 1 ? stored.shape[0] : 0));
  if (divisors.empty() || divisors.size() > 4096) {
    refuse(file, "rope_freqs.weight has an impossible shape; fetch the file again");
  }
  file.dequantize_into(stored, divisors);
  const double factor = *std::max_element(divisors.begin(), divisors.end());
  const auto wanted =
      llama3_divisors(theta, factor, static_cast<std::int64_t>(2 * divisors.size()));
  for (std::size_t j = 0; j < wanted.size(); ++j) {
    if (!(std::abs(divisors[j] - wanted[j]) <= 1e-3 * wanted[j])) {
      refuse(file,
             "rope_freqs.weight is no scaling of Llama 3's kind; use the model's Hugging Face "
             "folder");
    }
  }
  return {{"rope_type", "llama3"},
          {"factor", factor},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}};
}

ordered_json rope_scaling(const GgufFile& file, const std::string& prefix, double theta) {
  if (const GgufTensor* stored = file.find("rope_freqs.weight")) {
    return llama3_scaling(file, *stored, theta);
  }
  const std::string type = file.text(prefix + "rope.scaling.type").value_or("none");
  if (type == "none") {
    return nullptr;
  }
  if (type != "linear") {
    refuse(file,
           fmt::format("rope.scaling.type {} is not supported; supported: none, linear",
                       in_quotes(type)));
  }
  return {{"rope_type", "linear"},
          {"factor", float_field(file, prefix + "rope.scaling.factor", 0.0)}};
}

// What this version would silently compute otherwise than the file means.
void refuse_unsupported(const GgufFile& file, const std::string& prefix, std::int64_t head_dim) {
  if (file.integer(prefix + "expert_count").value_or(0) != 0) {
    refuse(
        file,
        fmt::format("is a mixture of experts, which is not supported by this version; supported: "
                    "{}",
                    supported_families()));
  }
  if (file.integer(prefix + "attention.sliding_window").value_or(0) != 0) {
    refuse(file, "has a sliding window, which GGUF leaves unclear; use its Hugging Face folder");
  }
  for (const char* key : {"rope.dimension_count", "attention.value_length"}) {
    if (file.integer(prefix + key).value_or(head_dim) != head_dim) {
      refuse(file,
             fmt::format("metadata {} differs from the head size {}, which is not supported",
                         in_quotes(prefix + key),
                         head_dim));
    }
  }
}

const Family& family_of(const GgufFile& file) {
  const std::string architecture = file.text("general.architecture").value_or("(none)");
  const Family* family = find_family_by_gguf(architecture);
  if (family == nullptr) {
    refuse(file,
           fmt::format("architecture {} is not supported by this version; supported: {}",
                       in_quotes(architecture),
                       supported_families()));
  }
  return *family;
}

void add_sizes(const GgufFile& file, const std::string& prefix, ordered_json& out) {
  const GgufTensor* embedding = file.find("token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2) {
    refuse(file, "has no matrix token_embd.weight; fetch the file again");
  }
  const std::int64_t hidden_size = required(file, prefix + "embedding_length");
  const std::int64_t num_heads = required(file, prefix + "attention.head_count");
  out["hidden_size"] = hidden_size;
  out["intermediate_size"] = required(file, prefix + "feed_forward_length");
  out["num_hidden_layers"] = required(file, prefix + "block_count");
  out["num_attention_heads"] = num_heads;
  out["num_key_value_heads"] = file.integer(prefix + "attention.head_count_kv").value_or(num_heads);
  const std::int64_t usual = num_heads > 0 ? hidden_size / num_heads : 0;
  out["head_dim"] = file.integer(prefix + "attention.key_length").value_or(usual);
  out["vocab_size"] = embedding->shape[0];  // rows may be more than the tokenizer has ids
  out["max_position_embeddings"] = required(file, prefix + "context_length");
}

void add_token_ids(const GgufFile& file, ordered_json& out) {
  const std::string prefix = "tokenizer.ggml.";
  ordered_json eos = ordered_json::array();
  for (const char* key : {"eos_token_id", "eot_token_id"}) {
    if (const auto id = file.integer(prefix + key)) {
      eos.push_back(*id);
    }
  }
  out["eos_token_id"] = eos.size() == 1 ? eos[0] : eos;
  if (const auto id = file.integer(prefix + "bos_token_id")) {
    out["bos_token_id"] = *id;
  }
  if (const auto id = file.integer(prefix + "padding_token_id")) {
    out["pad_token_id"] = *id;
  }
}

}  // namespace

ModelConfig config_from_gguf(const GgufFile& file) {
  const Family& family = family_of(file);
  const std::string prefix = std::string(family.gguf_architecture) + ".";
  ordered_json out;
  out["architectures"] = ordered_json::array({std::string(family.architecture)});
  out["model_type"] = std::string(family.name);
  add_sizes(file, prefix, out);
  out["hidden_act"] = "silu";
  out["rms_norm_eps"] = float_field(file, prefix + "attention.layer_norm_rms_epsilon", 1e-6);
  const double theta = float_field(file, prefix + "rope.freq_base", 10000.0);
  out["rope_theta"] = theta;
  out["rope_scaling"] = rope_scaling(file, prefix, theta);
  out["tie_word_embeddings"] = file.find("output.weight") == nullptr;
  if (!family.qkv_bias) {
    out["attention_bias"] = file.find("blk.0.attn_q.bias") != nullptr;
  }
  if (family.window == WindowRule::kUpperLayers) {
    out["sliding_window"] = nullptr;
  }
  add_token_ids(file, out);
  out["torch_dtype"] = "float32";  // what its values become
  // The reader of config.json checks the numbers.
  const ModelConfig config = parse_config(out.dump(2) + "\n", file.path().string());
  refuse_unsupported(file, prefix, config.head_dim);
  return config;
}

}  // namespace tandem::model
