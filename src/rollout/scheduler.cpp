#include "rollout/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace tandem::rollout {

Scheduler::Scheduler(const SchedulerConfig& config, TextSinkFactory text)
    : config_(config), text_(std::move(text)), blocks_(config.blocks) {
  if (config.max_sequences < 1 || config.max_batched_tokens < config.max_sequences) {
    fail<UserError>(
        "max_batched_tokens is {} and max_sequences {}: each running sample needs a row a step, so "
        "give at least as many tokens",
        config.max_batched_tokens,
        config.max_sequences);
  }
}

void Scheduler::add(GroupRequest request) {
  if (!request.params.stop_strings.empty() && !text_) {
    fail<UserError>("draw {}: stop strings need a tokenizer that decodes", request.draw);
  }
  auto group = check_request(std::move(request), config_, blocks_);
  const GroupRequest& added = group->request;
  for (const auto& [key, other] : groups_) {
    const auto [draw, first] = key;
    TANDEM_CHECK(draw != added.draw || first >= added.first_sample + added.num_samples ||
                     added.first_sample >= first + other->request.num_samples,
                 "draw {}: samples from {} are running already",
                 draw,
                 first);
  }
  auto prompt = std::make_unique<Sequence>();
  prompt->group = group.get();
  prompt->ids = added.prompt;
  groups_.emplace(std::pair(added.draw, added.first_sample), std::move(group));
  waiting_.push_back(std::move(prompt));
}

bool Scheduler::has_work() const {
  return !waiting_.empty() || !running_.empty() || !finished_.empty();
}

StepPlan Scheduler::schedule() {
  TANDEM_CHECK(!in_step_, "schedule() before the commit() of the last step");
  in_step_ = true;
  in_flight_.clear();
  StepPlan plan;
  for (const Owned& sequence : running_) {
    if (sequence->is_decoding()) {
      place(*sequence, 1, plan);
    }
  }
  for (const Owned& sequence : running_) {
    if (!sequence->is_decoding()) {
      place(*sequence, chunk(*sequence, static_cast<std::int64_t>(plan.ids.size())), plan);
    }
  }
  admit(plan);
  counters_.steps += plan.empty() ? 0 : 1;
  counters_.kv_usage_peak = std::max(counters_.kv_usage_peak, counters().kv_usage);
  return plan;
}

std::int64_t Scheduler::chunk(const Sequence& sequence, std::int64_t num_placed) const {
  std::int64_t num_rows =
      std::min(sequence.length() - sequence.computed, config_.max_batched_tokens - num_placed);
  if (config_.max_prompt_chunk > 0) {
    num_rows = std::min(num_rows, config_.max_prompt_chunk);
  }
  return num_rows;
}

// Gives `sequence` its next rows in this step; its blocks come out of what was promised to it.
void Scheduler::place(Sequence& sequence, std::int64_t num_rows, StepPlan& plan) {
  if (num_rows == 0) {
    return;
  }
  const std::size_t num_before = sequence.table->blocks().size();
  TANDEM_CHECK(blocks_.extend(*sequence.table, sequence.computed + num_rows),
               "draw {}: the blocks that were promised to it are gone",
               sequence.group->request.draw);
  const auto num_taken = static_cast<std::int64_t>(sequence.table->blocks().size() - num_before);
  reserve(sequence, sequence.reserved - num_taken);
  refresh_slots(sequence, blocks_.block_size());
  append_rows(sequence, num_rows, plan);
  in_flight_.push_back({&sequence, num_rows});

  const std::int64_t num_again =
      std::clamp<std::int64_t>(sequence.high_water - sequence.computed, 0, num_rows);
  counters_.tokens_recomputed += num_again;
  (sequence.is_prompt() ? counters_.tokens_prefill : counters_.tokens_decode) +=
      num_rows - num_again;
}

void Scheduler::admit(StepPlan& plan) {
  std::int64_t num_running = counters().running;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Sequence& sequence = **next;
    const std::int64_t num_rows = chunk(sequence, static_cast<std::int64_t>(plan.ids.size()));
    if (num_rows == 0 || num_running + sequence.width() > config_.max_sequences) {
      break;
    }
    const GroupRequest& request = sequence.group->request;
    sequence.root = {.weight_version = version_, .salt = request.cache_salt};
    const PrefixMatch match = request.read_cache ? blocks_.match(sequence.root, sequence.ids)
                                                 : blocks_.no_match(sequence.root);
    const auto num_hits = static_cast<std::int64_t>(match.blocks.size());
    const bool held_back =
        request.read_cache && std::ranges::any_of(running_, [&](const Owned& ahead) {
          return shares_unwritten(
              *ahead, sequence.root, sequence.ids, num_hits, blocks_.block_size());
        });
    if (held_back) {
      ++next;
      continue;
    }
    if (peak_blocks(sequence, blocks_) - num_hits + match.num_idle >
        blocks_.num_free() - promised_) {
      break;
    }
    start(sequence, match);
    num_running += sequence.width();
    running_.push_back(std::move(*next));
    next = waiting_.erase(next);
    place(sequence, chunk(sequence, static_cast<std::int64_t>(plan.ids.size())), plan);
  }
}

void Scheduler::start(Sequence& sequence, const PrefixMatch& match) {
  sequence.table = blocks_.allocate(match, sequence.length());
  TANDEM_CHECK(sequence.table.has_value(), "no blocks for a sequence that was found to fit");
  sequence.computed = static_cast<std::int64_t>(match.blocks.size()) * blocks_.block_size();
  reserve(
      sequence,
      peak_blocks(sequence, blocks_) - static_cast<std::int64_t>(sequence.table->blocks().size()));
  GroupState& group = *sequence.group;
  if (!group.counted) {
    group.counted = true;
    counters_.prefix_query_tokens += group.request.read_cache ? group.prompt_length() : 0;
    counters_.prefix_hit_tokens += sequence.computed;
  }
}

void Scheduler::reserve(Sequence& sequence, std::int64_t num_blocks) {
  promised_ += num_blocks - sequence.reserved;
  sequence.reserved = num_blocks;
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
  release(**place);
  (*place)->computed = 0;
  waiting_.push_front(std::move(*place));
  running_.erase(place);
  ++counters_.preemptions;
  return true;
}

SchedulerCounters Scheduler::counters() const {
  SchedulerCounters now = counters_;
  for (const Owned& sequence : running_) {
    now.running += sequence->width();
  }
  for (const Owned& sequence : waiting_) {
    now.waiting += sequence->width();
  }
  now.kv_usage =
      1.0 - static_cast<double>(blocks_.num_free()) / static_cast<double>(blocks_.num_usable());
  return now;
}

void Scheduler::check_invariants() const {
  std::vector<const BlockTable*> tables;
  std::int64_t num_promised = 0;
  for (const Owned& sequence : running_) {
    tables.push_back(&*sequence->table);
    num_promised += sequence->reserved;
    TANDEM_CHECK(sequence->computed < sequence->length() && sequence->reserved >= 0,
                 "a running sequence of {} tokens has {} computed and {} blocks promised",
                 sequence->length(),
                 sequence->computed,
                 sequence->reserved);
  }
  for (const Owned& sequence : waiting_) {
    TANDEM_CHECK(!sequence->table && sequence->reserved == 0, "a waiting sequence holds blocks");
  }
  blocks_.check_invariants(tables);
  TANDEM_CHECK(num_promised == promised_ && promised_ <= blocks_.num_free(),
               "{} blocks are promised, the sequences say {}, {} are free",
               promised_,
               num_promised,
               blocks_.num_free());
  TANDEM_CHECK(waiting_.empty() && running_.empty() ? groups_.empty() : !groups_.empty(),
               "{} groups for {} waiting and {} running sequences",
               groups_.size(),
               waiting_.size(),
               running_.size());
}

}  // namespace tandem::rollout
