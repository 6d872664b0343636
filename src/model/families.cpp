#include "model/families.h"

#include <algorithm>
#include <array>

namespace tandem::model {
namespace {

// Defaults are those of the transformers library for a field that a config leaves out.
constexpr std::array kFamilies = {
    Family{.name = "llama",
           .architecture = "LlamaForCausalLM",
           .default_max_positions = 2048,
           .gguf_architecture = "llama",
           .gguf_permutes_qk = true},
    Family{.name = "mistral",
           .architecture = "MistralForCausalLM",
           .window = WindowRule::kEveryLayer,
           .default_max_positions = 131072,
           .default_window = 4096},
    Family{.name = "qwen2",
           .architecture = "Qwen2ForCausalLM",
           .qkv_bias = true,
           .window = WindowRule::kUpperLayers,
           .default_max_positions = 32768,
           .default_window = 4096,
           .gguf_architecture = "qwen2"},
    Family{.name = "qwen3",
           .architecture = "Qwen3ForCausalLM",
           .qk_norm = true,
           .window = WindowRule::kUpperLayers,
           .default_head_dim = 128,
           .default_max_positions = 32768,
           .default_window = 4096,
           .gguf_architecture = "qwen3"},
};

const Family* find_by(std::string_view Family::*field, std::string_view value) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& family) {
    return !value.empty() && family.*field == value;
  });
  return found == kFamilies.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

const Family* find_family(std::string_view model_type) {
  return find_by(&Family::name, model_type);
}

const Family* find_family_by_architecture(std::string_view architecture) {
  return find_by(&Family::architecture, architecture);
}

const Family* find_family_by_gguf(std::string_view gguf_architecture) {
  return find_by(&Family::gguf_architecture, gguf_architecture);
}

std::string supported_families() {
  std::string text;
  for (const Family& family : kFamilies) {
    text += (text.empty() ? "" : ", ") + std::string(family.name);
  }
  return text;
}

}  // namespace tandem::model
