// The second half of the scheduler: what happens to sequences after the forward of a step.
#include <algorithm>
#include <utility>

#include "base/error.h"
#include "rollout/scheduler.h"

namespace tandem::rollout {
namespace {

void append_token(const SampledToken& token, WeightVersion version, FinishedSample& output) {
  if (!token.allowed.is_all() || !output.allowed.empty()) {
    output.allowed.resize(output.ids.size());
    output.allowed.push_back(token.allowed);
  }
  if (!token.top.empty()) {
    output.top.push_back(token.top);
  }
  output.ids.push_back(token.id);
  output.logprobs.push_back(token.logprob);
  output.versions.push_back(version);
}

}  // namespace

std::vector<FinishedSample> Scheduler::commit(const StepPlan& plan,
                                              std::span<const SampledToken> sampled) {
  TANDEM_CHECK(in_step_, "commit() without a schedule() before it");
  TANDEM_CHECK(sampled.size() == plan.samples.size() && in_flight_.size() == plan.sequences.size(),
               "{} tokens for {} samples of a step",
               sampled.size(),
               plan.samples.size());
  for (const InFlight& part : in_flight_) {
    Sequence& sequence = *part.sequence;
    sequence.computed += part.num_rows;
    sequence.high_water = std::max(sequence.high_water, sequence.computed);
    blocks_.copied(*sequence.table);
    blocks_.commit(*sequence.table, sequence.ids, sequence.computed);
    if (sequence.computed < sequence.length()) {
      continue;
    }
    const auto num_drawn = static_cast<std::size_t>(sequence.width());
    const auto tokens = sampled.first(num_drawn);
    sampled = sampled.subspan(num_drawn);
    if (sequence.is_prompt()) {
      start_samples(sequence, tokens);
    } else {
      accept(sequence, tokens.front());
    }
  }
  in_step_ = false;
  in_flight_.clear();
  sweep();
  for (const Abort& abort : std::exchange(aborts_, {})) {
    apply(abort);
  }
  if (config_.check_each_step) {
    check_invariants();
  }
  return take_finished();
}

void Scheduler::accept(Sequence& sample, const SampledToken& token) {
  if (!token.finite) {
    ++counters_.nan_rows;
    finish(sample, {FinishReason::kError, std::nullopt, {}});
    return;
  }
  append_token(token, version_, sample.output);
  sample.ids.push_back(token.id);
  const auto num_tokens = static_cast<std::int64_t>(sample.output.ids.size());
  if (auto stop = sample.stop_rules->push(token.id, num_tokens)) {
    finish(sample, std::move(*stop));
  }
}

// The samples that go on after their first token get the prompt's blocks: the last one takes the
// table, the others fork it.
void Scheduler::start_samples(Sequence& prompt, std::span<const SampledToken> tokens) {
  GroupState& group = *prompt.group;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Owned sample = make_sample(group, group.open[i]);
    accept(*sample, tokens[i]);
    if (!sample->done) {
      prompt.successors.push_back(std::move(sample));
    }
  }
  group.open.clear();
  prompt.done = true;
  reserve(prompt, 0);
  for (const Owned& sample : prompt.successors) {
    if (sample == prompt.successors.back()) {
      sample->table = std::move(*prompt.table);
    } else {
      sample->table = blocks_.fork(*prompt.table, prompt.length());
      TANDEM_CHECK(sample->table.has_value(), "draw {}: no block for a fork", group.request.draw);
      ++counters_.forks;
      counters_.cow_copies += sample->table->pending_copy() ? 1 : 0;
    }
    sample->computed = prompt.length();
    sample->high_water = prompt.length();
    sample->root = prompt.root;
    refresh_slots(*sample, blocks_.block_size());
    const auto num_blocks = static_cast<std::int64_t>(sample->table->blocks().size());
    reserve(*sample, peak_blocks_of_sample(group, blocks_) - num_blocks);
  }
  prompt.table.reset();
}

Scheduler::Owned Scheduler::make_sample(GroupState& group, std::int32_t sample) const {
  const GroupRequest& request = group.request;
  auto sequence = std::make_unique<Sequence>();
  sequence->group = &group;
  sequence->sample = sample;
  sequence->ids = request.prompt;
  sequence->stop_rules = std::make_unique<StopRules>(
      request.params,
      group.max_new_tokens,
      request.params.stop_strings.empty() ? nullptr : text_(request.prompt));
  return sequence;
}

// The one way for a sample to end.
void Scheduler::finish(Sequence& sample, Stop stop) {
  const GroupRequest& request = sample.group->request;
  sample.output.draw = request.draw;
  sample.output.sample = request.first_sample + sample.sample;
  sample.output.stop = std::move(stop);
  sample.output.text = sample.stop_rules->final_text();
  finished_.push_back(std::move(sample.output));
  release(sample);
  sample.done = true;
  --sample.group->num_unfinished;
}

void Scheduler::release(Sequence& sequence) {
  reserve(sequence, 0);
  sequence.table.reset();
  sequence.slots.clear();
}

// Replaces prompts that are done by their samples, and forgets what has ended.
void Scheduler::sweep() {
  std::vector<Owned> running;
  for (Owned& sequence : running_) {
    if (!sequence->done) {
      running.push_back(std::move(sequence));
      continue;
    }
    std::ranges::move(sequence->successors, std::back_inserter(running));
  }
  running_ = std::move(running);
  std::erase_if(waiting_, [](const Owned& sequence) { return sequence->done; });
  std::erase_if(groups_, [](const auto& item) { return item.second->num_unfinished == 0; });
}

bool Scheduler::abort(std::int64_t draw, std::optional<std::int32_t> sample) {
  const Abort abort{draw, sample};
  if (!in_step_) {
    return apply(abort);
  }
  aborts_.push_back(abort);
  return alive(abort);
}

bool Scheduler::alive(const Abort& abort) const {
  const auto names = [&](const Owned& sequence) {
    return stands_for(*sequence, abort.draw, abort.sample);
  };
  return std::ranges::any_of(running_, names) || std::ranges::any_of(waiting_, names);
}

bool Scheduler::apply(const Abort& abort) {
  bool found = false;
  for (const Owned& sequence : running_) {
    found |= abort_in(*sequence, abort);
  }
  for (const Owned& sequence : waiting_) {
    found |= abort_in(*sequence, abort);
  }
  sweep();
  return found;
}

bool Scheduler::abort_in(Sequence& sequence, const Abort& abort) {
  if (!stands_for(sequence, abort.draw, abort.sample)) {
    return false;
  }
  const Stop stop{FinishReason::kAbort, std::nullopt, {}};
  if (!sequence.is_prompt()) {
    ++counters_.aborts;
    finish(sequence, stop);
    return true;
  }
  GroupState& group = *sequence.group;
  const auto is_named = [&](std::int32_t sample) {
    return !abort.sample || sample == *abort.sample - group.request.first_sample;
  };
  for (const std::int32_t sample : group.open) {
    if (is_named(sample)) {
      ++counters_.aborts;
      finish(*make_sample(group, sample), stop);
    }
  }
  std::erase_if(group.open, is_named);
  if (group.open.empty()) {
    release(sequence);
    sequence.done = true;
  } else if (sequence.table) {
    const auto num_blocks = static_cast<std::int64_t>(sequence.table->blocks().size());
    reserve(sequence, peak_blocks(sequence, blocks_) - num_blocks);
  }
  return true;
}

}  // namespace tandem::rollout
