// Cuts the query rows of an attention call into blocks that share their keys.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/attention.h"
#include "kernels/cpu/attention.h"

namespace tandem::kernels {

/// The rows of a call as blocks of rows that follow one another on one path. Blocks decide which
/// loads are shared, and no bit of any row.
///
/// Points into the slots of `paths`. Throws Error for wrong shapes and types, and for positions and
/// slots out of range; slots that no row sees may hold anything.
std::vector<QueryBlock> plan_blocks(const KeyPaths& paths,
                                    const AttentionShape& shape,
                                    std::int64_t num_rows,
                                    std::int64_t num_slots);

/// Consecutive blocks whose backward passes add into one pair of buffers, one after another.
struct BlockChunk {
  std::int64_t first_block = 0;
  std::int64_t last_block = 0;  // one past
  std::int64_t first_slot = 0;  // of the slots that its rows see
  std::int64_t num_slots = 0;
};

/// At most `num_chunks` chunks of about equal work. Depends on the blocks alone, not on threads.
std::vector<BlockChunk> chunk_blocks(const std::vector<QueryBlock>& blocks,
                                     const AttentionShape& shape,
                                     std::int64_t num_chunks);

}  // namespace tandem::kernels
