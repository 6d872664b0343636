// The memory of keys and values: one reservation, whose pages come and go with the rollout phase.
#pragma once

#include <cstdint>

#include "base/reserved_memory.h"
#include "model/decoder.h"

namespace tandem::rollout {

struct KvArenaConfig {
  std::int64_t num_slots = 0;  // tokens that fit; blocks * block_size
  std::int64_t num_layers = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  at::ScalarType dtype = at::kFloat;

  [[nodiscard]] std::int64_t bytes() const;
};

/// Owns the cache tensors. The addresses stay the same for its whole life; the pages behind them
/// are given to the system by `release` and come back, zeroed, when they are written again.
class KvArena {
 public:
  /// Reserves address space, touches nothing. Throws MachineError when the reservation fails.
  explicit KvArena(const KvArenaConfig& config);

  [[nodiscard]] model::KvCache& cache() { return cache_; }
  [[nodiscard]] std::int64_t bytes() const { return memory_.bytes(); }

  /// Gives all pages back; what was cached is lost.
  void release() { memory_.release(); }

 private:
  ReservedMemory memory_;
  model::KvCache cache_;
};

}  // namespace tandem::rollout
