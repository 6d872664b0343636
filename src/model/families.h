// The families that the decoder can run: one row each, with what differs between them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::model {

enum class WindowRule { kNever, kEveryLayer, kUpperLayers };

/// A family. Defaults are those for a field that the config leaves out.
struct Family {
  std::string_view name;          // `model_type`
  std::string_view architecture;  // `architectures[0]`
  bool qkv_bias = false;          // whatever the config says
  bool qk_norm = false;
  WindowRule window = WindowRule::kNever;
  double default_rope_theta = 10000.0;
  std::int64_t default_head_dim = 0;  // 0: hidden_size / num_heads
  std::int64_t default_max_positions = 0;
  std::int64_t default_window = 0;
  std::string_view gguf_architecture = {};  // empty: GGUF stores it under another family's name
  bool gguf_permutes_qk = false;  // its q and k rows are interleaved for adjacent-pair rotary
};

std::span<const Family> families();

/// The row by `model_type`, by architecture or by GGUF architecture; null when there is none.
const Family* find_family(std::string_view model_type);
const Family* find_family_by_architecture(std::string_view architecture);
const Family* find_family_by_gguf(std::string_view gguf_architecture);

/// "llama, mistral, qwen2, qwen3", for messages.
std::string supported_families();

}  // namespace tandem::model
