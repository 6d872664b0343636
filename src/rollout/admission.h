// Rules about requests that are not running yet.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "rollout/scheduler_config.h"
#include "rollout/sequence.h"

namespace tandem::rollout {

/// The state of a new request. Throws tandem::UserError, naming the numbers, when it can never run:
/// a wrong setting, an empty prompt, more samples than may run at one time, a prompt that leaves no
/// room for a token below max_model_len, or a sample of more blocks than the pool has.
std::unique_ptr<GroupState> check_request(GroupRequest request,
                                          const SchedulerConfig& config,
                                          const BlockManager& blocks);

/// True when `ahead`, whose rows are being computed, will soon have blocks in the cache that `ids`
/// under `root` begins with too and of which only `num_hits` can be found yet.
bool shares_unwritten(const Sequence& ahead,
                      const CacheRoot& root,
                      std::span<const TokenId> ids,
                      std::int64_t num_hits,
                      std::int32_t block_size);

}  // namespace tandem::rollout
