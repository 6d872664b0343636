#include "rollout/kv_arena.h"

namespace tandem::rollout {

std::int64_t KvArenaConfig::bytes() const {
  return 2 * num_layers * num_slots * num_kv_heads * head_dim *
         static_cast<std::int64_t>(at::elementSize(dtype));
}

KvArena::KvArena(const KvArenaConfig& config)
    : memory_(config.bytes(), "rollout.kv_bytes (keys and values)") {
  const std::int64_t tensor_bytes = memory_.bytes() / (2 * config.num_layers);
  char* next = memory_.data();
  for (std::int64_t i = 0; i < 2 * config.num_layers; ++i, next += tensor_bytes) {
    auto tensor = at::from_blob(
        next, {config.num_slots, config.num_kv_heads, config.head_dim}, at::dtype(config.dtype));
    (i % 2 == 0 ? cache_.k : cache_.v).push_back(tensor);
  }
}

}  // namespace tandem::rollout
