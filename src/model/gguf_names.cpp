#include "model/gguf_names.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace tandem::model {
namespace {

struct NamePair {
  std::string_view gguf;
  std::string_view hf;
};

constexpr std::array kOutside = {
    NamePair{"token_embd", "model.embed_tokens"},
    NamePair{"output_norm", "model.norm"},
    NamePair{"output", "lm_head"},
};

constexpr std::array kInLayer = {
    NamePair{"attn_norm", "input_layernorm"},
    NamePair{"attn_q", "self_attn.q_proj"},
    NamePair{"attn_k", "self_attn.k_proj"},
    NamePair{"attn_v", "self_attn.v_proj"},
    NamePair{"attn_output", "self_attn.o_proj"},
    NamePair{"attn_q_norm", "self_attn.q_norm"},
    NamePair{"attn_k_norm", "self_attn.k_norm"},
    NamePair{"ffn_norm", "post_attention_layernorm"},
    NamePair{"ffn_gate", "mlp.gate_proj"},
    NamePair{"ffn_up", "mlp.up_proj"},
    NamePair{"ffn_down", "mlp.down_proj"},
};

template <std::size_t N>
std::optional<std::string> lookup(const std::array<NamePair, N>& table, std::string_view gguf) {
  const auto found = std::find_if(
      table.begin(), table.end(), [&](const NamePair& pair) { return pair.gguf == gguf; });
  return found == table.end() ? std::nullopt : std::optional<std::string>(found->hf);
}

}  // namespace

std::optional<std::string> hf_name_of_gguf(const std::string& gguf_name) {
  const auto dot = gguf_name.rfind('.');
  if (dot == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view suffix = std::string_view(gguf_name).substr(dot);
  std::string_view stem = std::string_view(gguf_name).substr(0, dot);
  if (suffix != ".weight" && suffix != ".bias") {
    return std::nullopt;
  }
  std::string prefix;
  std::optional<std::string> name;
  constexpr std::string_view kBlock = "blk.";
  if (stem.starts_with(kBlock)) {
    stem.remove_prefix(kBlock.size());
    const auto layer = stem.substr(0, stem.find('.'));
    if (layer.empty() || layer.size() == stem.size() ||
        layer.find_first_not_of("0123456789") != std::string_view::npos) {
      return std::nullopt;
    }
    prefix = "model.layers." + std::string(layer) + ".";
    name = lookup(kInLayer, stem.substr(layer.size() + 1));
  } else {
    name = lookup(kOutside, stem);
  }
  return name ? std::optional(prefix + *name + std::string(suffix)) : std::nullopt;
}

bool is_ignored_gguf_tensor(const std::string& gguf_name) {
  return gguf_name == "rope_freqs.weight";
}

}  // namespace tandem::model
