// The scheduler between steps: aborts, pauses, preemption, new weights, and the books.
#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"
#include "rollout/scheduler.h"

namespace tandem::rollout {

bool Scheduler::has_work() const {
  if (!finished_.empty() || !paused_) {
    return !finished_.empty() || !is_idle();
  }
  return paused_ == PauseMode::kWait &&
         (!running_.empty() || std::ranges::any_of(waiting_, [](const Owned& sequence) {
           return sequence->group->started;
         }));
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
  for (const Queue* queue : {&running_, &waiting_}) {
    for (const Owned& sequence : *queue) {
      found |= abort_in(*sequence, abort);
    }
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
  }
  return true;
}

void Scheduler::pause(PauseMode mode) {
  TANDEM_CHECK(!in_step_, "pause() during a step");
  paused_ = mode;
  if (mode == PauseMode::kAbort) {
    std::vector<std::int64_t> draws;
    for (const auto& [key, group] : groups_) {
      draws.push_back(key.first);
    }
    for (const std::int64_t draw : draws) {
      apply({draw, std::nullopt});
    }
  }
}

void Scheduler::set_weight_version(WeightVersion version) {
  TANDEM_CHECK(!in_step_, "the weights changed during a step");
  TANDEM_CHECK(version > version_, "weight version {} after {}", version, version_);
  version_ = version;
  blocks_.forget_roots();
}

bool Scheduler::preempt(std::int64_t draw, std::int32_t sample) {
  TANDEM_CHECK(!in_step_, "preempt() during a step");
  const auto place = std::ranges::find_if(
      running_, [&](const Owned& sequence) { return stands_for(*sequence, draw, sample); });
  if (place == running_.end()) {
    return false;
  }
  take_blocks(place);
  return true;
}

void Scheduler::preempt_all() {
  TANDEM_CHECK(!in_step_, "preempt_all() during a step");
  while (!running_.empty()) {
    take_blocks(running_.end() - 1);
  }
}

void Scheduler::take_blocks(Queue::iterator victim) {
  Owned sequence = std::move(*victim);
  running_.erase(victim);
  release(*sequence);
  sequence->computed = 0;
  ++counters_.preemptions;
  insert(std::move(sequence), waiting_);
}

void Scheduler::insert(Owned sequence, Queue& queue) {
  const auto order = [](const Owned& other) { return other->order(); };
  const auto place = std::ranges::upper_bound(queue, sequence->order(), {}, order);
  queue.insert(place, std::move(sequence));
}

std::int64_t Scheduler::num_samples(const Queue& queue) {
  std::int64_t count = 0;
  for (const Owned& sequence : queue) {
    count += sequence->width();
  }
  return count;
}

SchedulerCounters Scheduler::counters() const {
  SchedulerCounters now = counters_;
  now.running = num_samples(running_);
  now.waiting = num_samples(waiting_);
  now.kv_usage =
      1.0 - static_cast<double>(blocks_.num_free()) / static_cast<double>(blocks_.num_usable());
  return now;
}

void Scheduler::check_invariants() const {
  std::vector<const BlockTable*> tables;
  std::map<const GroupState*, std::int64_t> alive_of_group;
  for (const Queue* queue : {&running_, &waiting_}) {
    const Sequence* previous = nullptr;
    for (const Owned& sequence : *queue) {
      TANDEM_CHECK(previous == nullptr || previous->order() < sequence->order(),
                   "a queue is out of order");
      previous = sequence.get();
      TANDEM_CHECK(sequence->table.has_value() == (queue == &running_),
                   "a sequence that waits holds blocks, or one that runs has none");
      TANDEM_CHECK(sequence->computed < sequence->length() && sequence->num_drafts == 0,
                   "a sequence of {} tokens has {} computed between steps",
                   sequence->length(),
                   sequence->computed);
      alive_of_group[sequence->group] += sequence->width();
      if (sequence->table) {
        tables.push_back(&*sequence->table);
      }
    }
  }
  blocks_.check_invariants(tables);
  TANDEM_CHECK(alive_of_group.size() == groups_.size(), "a group has no sequence left");
  for (const auto& [key, group] : groups_) {
    TANDEM_CHECK(alive_of_group[group.get()] == group->num_unfinished,
                 "draw {}: {} samples are alive and {} unfinished",
                 key.first,
                 alive_of_group[group.get()],
                 group->num_unfinished);
  }
}

}  // namespace tandem::rollout
