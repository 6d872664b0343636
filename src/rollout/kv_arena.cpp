#include "rollout/kv_arena.h"

#include <cerrno>
#include <cstring>

#include <sys/mman.h>

#include "base/error.h"

namespace tandem::rollout {

std::int64_t KvArenaConfig::bytes() const {
  return 2 * num_layers * num_slots * num_kv_heads * head_dim *
         static_cast<std::int64_t>(at::elementSize(dtype));
}

KvArena::KvArena(const KvArenaConfig& config) : bytes_(config.bytes()) {
  TANDEM_CHECK(bytes_ > 0, "a KV arena of {} bytes was asked for", bytes_);
  memory_ = ::mmap(nullptr,
                   static_cast<std::size_t>(bytes_),
                   PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1,
                   0);
  if (memory_ == MAP_FAILED) {
    fail<MachineError>("rollout.kv_bytes: {} bytes of keys and values cannot be reserved: {}",
                       bytes_,
                       std::strerror(errno));
  }
  ::madvise(memory_, static_cast<std::size_t>(bytes_), MADV_HUGEPAGE);
  const std::int64_t tensor_bytes = bytes_ / (2 * config.num_layers);
  auto* next = static_cast<char*>(memory_);
  for (std::int64_t i = 0; i < 2 * config.num_layers; ++i, next += tensor_bytes) {
    auto tensor = at::from_blob(
        next, {config.num_slots, config.num_kv_heads, config.head_dim}, at::dtype(config.dtype));
    (i % 2 == 0 ? cache_.k : cache_.v).push_back(tensor);
  }
}

KvArena::~KvArena() {
  if (memory_ != nullptr) {
    ::munmap(memory_, static_cast<std::size_t>(bytes_));
  }
}

void KvArena::release() {
  ::madvise(memory_, static_cast<std::size_t>(bytes_), MADV_DONTNEED);
}

}  // namespace tandem::rollout
