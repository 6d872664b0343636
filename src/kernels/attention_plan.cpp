#include "kernels/attention_plan.h"

#include <algorithm>

#include <ATen/ATen.h>

#include "base/error.h"

namespace tandem::kernels {
namespace {

// The first position that a block's first row sees.
std::int64_t first_seen(const QueryBlock& block, const AttentionShape& shape) {
  const std::int64_t position = block.first_position;
  return shape.window > 0 ? std::max<std::int64_t>(0, position - shape.window + 1) : 0;
}

std::int64_t last_seen(const QueryBlock& block) {
  return block.first_position + block.num_rows - 1;
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
  const std::int64_t heads_per_group = shape.num_heads / shape.num_kv_heads;
  const std::int64_t max_rows = std::max<std::int64_t>(1, kAttentionBlockQueries / heads_per_group);
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
