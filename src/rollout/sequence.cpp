#include "rollout/sequence.h"

#include <algorithm>

namespace tandem::rollout {
namespace {

RandomKey random_key(const GroupRequest& request, std::int32_t sample, std::size_t position) {
  return {.seed = request.params.seed,
          .draw = static_cast<std::uint64_t>(request.draw),
          .sample = static_cast<std::uint32_t>(request.first_sample + sample),
          .turn = static_cast<std::uint32_t>(request.turn),
          .position = static_cast<std::uint32_t>(position)};
}

// The token behind the first `length` of the sequence, drawn from the last of plan.sample_rows.
void append_sample(const Sequence& sequence,
                   std::int32_t sample,
                   std::size_t length,
                   StepPlan& plan) {
  const GroupRequest& request = sequence.group->request;
  SampleEntry& entry = plan.samples.emplace_back();
  entry.logits_row = static_cast<std::int32_t>(plan.sample_rows.size()) - 1;
  entry.input.params = &request.params;
  entry.input.context = std::span(sequence.ids).first(length);
  entry.input.num_generated = static_cast<std::int64_t>(length - request.prompt.size());
  entry.input.key = random_key(request, sample, length);
}

// The prompt's tokens behind the rows [begin, end) of the sequence that were not scored yet. Their
// rows are the last of the plan.
void append_scores(const Sequence& sequence, std::int64_t begin, std::int64_t end, StepPlan& plan) {
  const GroupState& group = *sequence.group;
  const auto num_scored = static_cast<std::int64_t>(group.prompt.logprobs.size());
  const auto shift = static_cast<std::int64_t>(plan.ids.size()) - end;
  for (std::int64_t p = std::max(begin, num_scored); p < std::min(end, sequence.length() - 1);
       ++p) {
    SampleEntry& entry = plan.samples.emplace_back();
    entry.logits_row = static_cast<std::int32_t>(plan.sample_rows.size());
    entry.input.params = &group.request.params;
    entry.input.given = sequence.ids[p + 1];
    plan.sample_rows.push_back(static_cast<std::int32_t>(shift + p));
  }
}

void append_samples(const Sequence& sequence, StepPlan& plan) {
  const auto end = static_cast<std::int32_t>(plan.ids.size());
  if (!sequence.is_prompt()) {
    for (std::int64_t i = 0; i <= sequence.num_drafts; ++i) {
      plan.sample_rows.push_back(static_cast<std::int32_t>(end - 1 - sequence.num_drafts + i));
      append_sample(
          sequence, sequence.sample, static_cast<std::size_t>(sequence.length() + i), plan);
    }
    return;
  }
  plan.sample_rows.push_back(end - 1);
  for (const std::int32_t sample : sequence.group->open) {
    append_sample(sequence, sample, sequence.ids.size(), plan);
  }
}

}  // namespace

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
  if (sequence.num_to_score() > 0) {
    append_scores(sequence, sequence.computed, end, plan);
  }
  if (end == sequence.length() + sequence.num_drafts) {
    append_samples(sequence, plan);
  }
}

}  // namespace tandem::rollout
