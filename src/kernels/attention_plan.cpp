#include "kernels/attention_plan.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"

namespace tandem::kernels {
namespace {

// Queries that a task of short blocks walks side by side, of as many heads as that takes.
constexpr std::int64_t kQueriesSideBySide = 16;

// The first position that a block's first row sees.
std::int64_t first_seen(const QueryBlock& block, const AttentionShape& shape) {
  const std::int64_t position = block.first_position;
  return shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
}

std::int64_t last_seen(const QueryBlock& block) {
  return block.first_position + block.num_rows - 1;
}

std::int64_t max_block_rows(const AttentionShape& shape) {
  const std::int64_t heads_per_group = shape.num_heads / shape.num_kv_heads;
  return std::max<std::int64_t>(1, kAttentionBlockQueries / heads_per_group);
}

// Positions from 0 on, in whole tiles, at which both paths have the same slots and that all rows of
// both blocks are behind.
std::int64_t whole_tiles_shared(const QueryBlock& a, const QueryBlock& b) {
  const std::int64_t limit = std::min(a.first_position, b.first_position) + 1;
  const std::int64_t same = std::mismatch(a.slots, a.slots + limit, b.slots).first - a.slots;
  return same / kAttentionTile * kAttentionTile;
}

void check_paths(const KeyPaths& paths, std::int64_t num_rows) {
  TANDEM_CHECK(paths.positions.scalar_type() == at::kInt && paths.positions.is_contiguous() &&
                   paths.positions.numel() == num_rows,
               "positions must be {} contiguous int32",
               num_rows);
  TANDEM_CHECK(paths.path_start.scalar_type() == at::kLong && paths.path_start.is_contiguous() &&
                   paths.path_start.numel() == num_rows,
               "path_start must be {} contiguous int64",
               num_rows);
  TANDEM_CHECK(paths.key_slots.scalar_type() == at::kInt && paths.key_slots.is_contiguous(),
               "key_slots must be contiguous int32");
}

void check_block(const QueryBlock& block,
                 const KeyPaths& paths,
                 const AttentionShape& shape,
                 std::int64_t num_slots) {
  const std::int64_t start = block.slots - paths.key_slots.const_data_ptr<std::int32_t>();
  TANDEM_CHECK(
      block.first_position >= 0 && start >= 0 && start + last_seen(block) < paths.key_slots.numel(),
      "row {} at position {} with path_start {} leaves the {} key_slots",
      block.first_row,
      block.first_position,
      start,
      paths.key_slots.numel());
  const auto limit = static_cast<std::uint32_t>(num_slots);
  std::uint32_t largest = 0;  // a negative slot becomes a large one
  for (std::int64_t j = first_seen(block, shape); j <= last_seen(block); ++j) {
    largest = std::max(largest, static_cast<std::uint32_t>(block.slots[j]));
  }
  TANDEM_CHECK(largest < limit,
               "row {} sees slot {} of {}",
               block.first_row,
               static_cast<std::int32_t>(largest),
               num_slots);
}

}  // namespace

std::vector<QueryBlock> plan_blocks(const KeyPaths& paths,
                                    const AttentionShape& shape,
                                    std::int64_t num_rows,
                                    std::int64_t num_slots) {
  check_paths(paths, num_rows);
  const auto* positions = paths.positions.const_data_ptr<std::int32_t>();
  const auto* starts = paths.path_start.const_data_ptr<std::int64_t>();
  const auto* slots = paths.key_slots.const_data_ptr<std::int32_t>();
  const std::int64_t max_rows = max_block_rows(shape);
  std::vector<QueryBlock> blocks;
  for (std::int64_t row = 0; row < num_rows;) {
    QueryBlock block = {slots + starts[row], row, 1, positions[row]};
    while (block.num_rows < max_rows && row + block.num_rows < num_rows &&
           starts[row + block.num_rows] == starts[row] &&
           positions[row + block.num_rows] == positions[row] + block.num_rows) {
      ++block.num_rows;
    }
    check_block(block, paths, shape, num_slots);
    blocks.push_back(block);
    row += block.num_rows;
  }
  return blocks;
}

std::vector<QueryGroup> group_blocks(const std::vector<QueryBlock>& blocks, std::int64_t max_rows) {
  std::vector<QueryGroup> groups;
  for (std::size_t first = 0; first < blocks.size(); first += groups.back().num_blocks) {
    QueryGroup group = {&blocks[first], 1, blocks[first].num_rows, 0};
    for (std::size_t next = first + 1; next < blocks.size(); ++next) {
      const std::int64_t shared = whole_tiles_shared(blocks[first], blocks[next]);
      // A path that leaves the others early would make their common part short.
      if (group.num_rows + blocks[next].num_rows > max_rows || shared == 0 ||
          shared < group.num_shared / 2) {
        break;
      }
      group.num_shared = group.num_blocks == 1 ? shared : std::min(group.num_shared, shared);
      group.num_rows += blocks[next].num_rows;
      ++group.num_blocks;
    }
    groups.push_back(group);
  }
  return groups;
}

std::vector<ForwardTask> plan_forward(const std::vector<QueryBlock>& blocks,
                                      const AttentionShape& shape,
                                      std::int64_t num_threads) {
  const std::int64_t heads_per_group = shape.num_heads / shape.num_kv_heads;
  std::int64_t num_rows = 0;
  for (const QueryBlock& block : blocks) {
    num_rows += block.num_rows;
  }
  const std::int64_t wanted_tasks = 2 * num_threads;
  const std::int64_t max_rows =
      std::min(max_block_rows(shape), (num_rows + wanted_tasks - 1) / wanted_tasks);
  const std::vector<QueryGroup> groups = group_blocks(blocks, max_rows);
  const bool few_groups = std::ssize(groups) < wanted_tasks;
  std::vector<ForwardTask> tasks;
  for (const QueryGroup& group : groups) {
    std::int64_t longest = 0;
    for (std::int64_t b = 0; b < group.num_blocks; ++b) {
      longest = std::max(longest, group.blocks[b].num_rows);
    }
    const std::int64_t queries = longest * heads_per_group;
    const std::int64_t heads =
        few_groups ? 1 : std::max<std::int64_t>(1, kQueriesSideBySide / queries);
    for (std::int64_t head = 0; head < shape.num_kv_heads; head += heads) {
      tasks.push_back({group, head, std::min(heads, shape.num_kv_heads - head), nullptr});
    }
  }
  return tasks;
}

std::vector<BlockChunk> chunk_blocks(const std::vector<QueryBlock>& blocks,
                                     const AttentionShape& shape,
                                     std::int64_t num_chunks) {
  const auto work_of = [&](const QueryBlock& block) {
    return (last_seen(block) - first_seen(block, shape) + kAttentionBlockQueries) * block.num_rows;
  };
  std::int64_t total = 0;
  for (const QueryBlock& block : blocks) {
    total += work_of(block);
  }
  std::vector<BlockChunk> chunks;
  std::int64_t done = 0;
  for (std::int64_t first = 0, last = 0; first < std::ssize(blocks); first = last) {
    std::int32_t low = std::numeric_limits<std::int32_t>::max();
    std::int32_t high = 0;
    const std::int64_t goal = total * (std::ssize(chunks) + 1) / num_chunks;
    do {
      const QueryBlock& block = blocks[last++];
      done += work_of(block);
      const auto [min, max] = std::minmax_element(block.slots + first_seen(block, shape),
                                                  block.slots + last_seen(block) + 1);
      low = std::min(low, *min);
      high = std::max(high, *max);
    } while (last < std::ssize(blocks) && done < goal);
    chunks.push_back({first, last, low, high - low + 1});
  }
  return chunks;
}

}  // namespace tandem::kernels
