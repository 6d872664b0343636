#include "rollout/sequence.h"

#include <algorithm>

namespace tandem::rollout {
namespace {

void append_samples(const Sequence& sequence, StepPlan& plan) {
  const GroupState& group = *sequence.group;
  const auto logits_row = static_cast<std::int32_t>(plan.sample_rows.size());
  plan.sample_rows.push_back(static_cast<std::int32_t>(plan.ids.size()) - 1);
  const auto add = [&](std::int32_t sample) {
    SampleEntry& entry = plan.samples.emplace_back();
    entry.logits_row = logits_row;
    entry.input.params = &group.request.params;
    entry.input.context = sequence.ids;
    entry.input.num_generated = static_cast<std::int64_t>(sequence.output.ids.size());
    entry.input.key = random_key(sequence, sample);
  };
  if (!sequence.is_prompt()) {
    add(sequence.sample);
    return;
  }
  for (const std::int32_t sample : group.open) {
    add(sample);
  }
}

}  // namespace

std::int64_t peak_blocks_of_sample(const GroupState& group, const BlockManager& blocks) {
  return blocks.blocks_for(group.prompt_length() + group.max_new_tokens - 1);
}

std::int64_t peak_blocks_of_prompt(const GroupState& group, const BlockManager& blocks) {
  const std::int64_t of_sample = peak_blocks_of_sample(group, blocks);
  if (group.max_new_tokens == 1) {
    return of_sample;  // the samples end with their first token and need no rows of their own
  }
  const std::int64_t num_shared = group.prompt_length() / blocks.block_size();
  return num_shared + static_cast<std::int64_t>(group.open.size()) * (of_sample - num_shared);
}

std::int64_t peak_blocks(const Sequence& sequence, const BlockManager& blocks) {
  return sequence.is_prompt() ? peak_blocks_of_prompt(*sequence.group, blocks)
                              : peak_blocks_of_sample(*sequence.group, blocks);
}

bool stands_for(const Sequence& sequence, std::int64_t draw, std::optional<std::int32_t> sample) {
  const GroupState& group = *sequence.group;
  if (group.request.draw != draw || !sample) {
    return group.request.draw == draw;
  }
  const std::int32_t index = *sample - group.request.first_sample;
  return sequence.is_prompt() ? std::ranges::find(group.open, index) != group.open.end()
                              : sequence.sample == index;
}

void refresh_slots(Sequence& sequence, std::int32_t block_size) {
  const auto blocks = sequence.table->blocks();
  for (std::size_t i = sequence.slots.size() / block_size; i < blocks.size(); ++i) {
    for (std::int32_t offset = 0; offset < block_size; ++offset) {
      sequence.slots.push_back(blocks[i] * block_size + offset);
    }
  }
}

void append_rows(const Sequence& sequence, std::int64_t num_rows, StepPlan& plan) {
  const std::int64_t end = sequence.computed + num_rows;
  const auto index = static_cast<std::int32_t>(plan.sequences.size());
  for (std::int64_t position = sequence.computed; position < end; ++position) {
    plan.ids.push_back(sequence.ids[position]);
    plan.positions.push_back(static_cast<std::int32_t>(position));
    plan.slots.push_back(sequence.slots[position]);
    plan.sequence_of_row.push_back(index);
  }
  const GroupRequest& request = sequence.group->request;
  const std::int32_t sample = sequence.is_prompt() ? 0 : sequence.sample;
  plan.sequences.push_back({std::span(sequence.slots).first(static_cast<std::size_t>(end)),
                            request.draw,
                            request.first_sample + sample});
  if (sequence.table->pending_copy()) {
    plan.copies.push_back(*sequence.table->pending_copy());
  }
  if (end == sequence.length()) {
    append_samples(sequence, plan);
  }
}

RandomKey random_key(const Sequence& sequence, std::int32_t sample) {
  const GroupRequest& request = sequence.group->request;
  return {.seed = request.params.seed,
          .draw = static_cast<std::uint64_t>(request.draw),
          .sample = static_cast<std::uint32_t>(request.first_sample + sample),
          .turn = static_cast<std::uint32_t>(request.turn),
          .position = static_cast<std::uint32_t>(sequence.length())};
}

}  // namespace tandem::rollout
