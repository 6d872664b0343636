#include "rollout/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "rollout/ngram_draft.h"

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
  group->arrival = num_added_++;
  auto prompt = std::make_unique<Sequence>();
  prompt->group = group.get();
  prompt->ids = added.prompt;
  groups_.emplace(std::pair(added.draw, added.first_sample), std::move(group));
  insert(std::move(prompt), waiting_);
}

StepPlan Scheduler::schedule() {
  TANDEM_CHECK(!in_step_, "schedule() before the commit() of the last step");
  in_step_ = true;
  in_flight_.clear();
  budget_ = config_.max_batched_tokens;
  if (paused_ != PauseMode::kKeep) {
    const bool somebody_lost = grant_decoding();
    grant_drafts();
    grant_chunks();
    if (!somebody_lost) {
      admit();
    }
  }
  counters_.kv_usage_peak = std::max(counters_.kv_usage_peak, counters().kv_usage);
  return make_plan();
}

// One row for each sample that is decoded. They are visited in order and the victim is the last
// that runs: it was not visited yet, so that no row has to be taken back. True when there was one.
bool Scheduler::grant_decoding() {
  bool somebody_lost = false;
  for (std::size_t i = 0; i < running_.size(); ++i) {
    Sequence& sequence = *running_[i];
    if (!sequence.is_decoding()) {
      continue;
    }
    bool has_room = blocks_.extend(*sequence.table, sequence.length());
    while (!has_room && i + 1 < running_.size()) {
      take_blocks(running_.end() - 1);
      somebody_lost = true;
      has_room = blocks_.extend(*sequence.table, sequence.length());
    }
    if (!has_room) {
      TANDEM_CHECK(
          i > 0, "draw {}: the pool is too small for one sample", sequence.group->request.draw);
      take_blocks(running_.end() - 1);
      return true;
    }
    grant(sequence, 1);
  }
  return somebody_lost;
}

// Guesses take what is left of rows and blocks, never a block of another sample. The last token of
// a sample needs no row, so that none is guessed behind it.
void Scheduler::grant_drafts() {
  if (config_.speculation.num_tokens == 0) {
    return;
  }
  for (InFlight& part : in_flight_) {
    Sequence& sample = *part.sequence;
    const auto num_tokens = static_cast<std::int64_t>(sample.output.ids.size());
    const std::int64_t num_wanted = std::min(
        {config_.speculation.num_tokens, budget_, sample.group->max_new_tokens - num_tokens - 1});
    const auto drafts = propose_ngram(sample.ids, config_.speculation, num_wanted);
    const auto num_drafts = static_cast<std::int64_t>(drafts.size());
    if (drafts.empty() || !blocks_.extend(*sample.table, sample.length() + num_drafts)) {
      continue;
    }
    sample.ids.insert(sample.ids.end(), drafts.begin(), drafts.end());
    sample.num_drafts = num_drafts;
    part.num_rows += num_drafts;
    budget_ -= num_drafts;
    counters_.drafts += num_drafts;
  }
}

void Scheduler::grant_chunks() {
  for (const Owned& sequence : running_) {
    if (!sequence->is_decoding()) {
      grant(*sequence, chunk(*sequence));
    }
  }
}

std::int64_t Scheduler::chunk(const Sequence& sequence) const {
  const std::int64_t num_rows = std::min(sequence.length() - sequence.computed, budget_);
  return config_.max_prompt_chunk > 0 ? std::min(num_rows, config_.max_prompt_chunk) : num_rows;
}

void Scheduler::grant(Sequence& sequence, std::int64_t num_rows) {
  if (num_rows > 0) {
    budget_ -= num_rows;
    in_flight_.push_back({&sequence, num_rows});
  }
}

void Scheduler::admit() {
  std::int64_t num_running = num_samples(running_);
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    Sequence& sequence = **next;
    if (budget_ == 0 || num_running + sequence.width() > config_.max_sequences) {
      break;
    }
    if (paused_ && !sequence.group->started) {
      ++next;
      continue;
    }
    sequence.root = {.weight_version = version_, .salt = sequence.group->request.cache_salt};
    const PrefixMatch match = sequence.reads_cache() ? blocks_.match(sequence.root, sequence.ids)
                                                     : blocks_.no_match(sequence.root);
    if (is_held_back(sequence, static_cast<std::int64_t>(match.blocks.size()))) {
      ++next;
      continue;
    }
    if (!fits(sequence, match)) {
      break;
    }
    start(sequence, match);
    num_running += sequence.width();
    insert(std::move(*next), running_);
    next = waiting_.erase(next);
  }
}

bool Scheduler::is_held_back(const Sequence& sequence, std::int64_t num_hits) const {
  return sequence.reads_cache() && std::ranges::any_of(running_, [&](const Owned& ahead) {
           return shares_unwritten(
               *ahead, sequence.root, sequence.ids, num_hits, blocks_.block_size());
         });
}

// The whole of what is known of it, the copies its forks will make, and a block for each sample
// that runs, which each of them will want soon. What is alone needs no room for others.
bool Scheduler::fits(const Sequence& sequence, const PrefixMatch& match) const {
  if (running_.empty()) {
    return true;
  }
  const bool has_partial = sequence.length() % blocks_.block_size() != 0;
  const std::int64_t num_forks = has_partial ? sequence.width() - 1 : 0;
  const std::int64_t need = blocks_.blocks_for(sequence.length()) + num_forks + match.num_idle -
                            static_cast<std::int64_t>(match.blocks.size());
  return need <= blocks_.num_free() - num_samples(running_);
}

void Scheduler::start(Sequence& sequence, const PrefixMatch& match) {
  sequence.table = blocks_.allocate(match, sequence.length());
  TANDEM_CHECK(sequence.table.has_value(), "no blocks for a sequence that was found to fit");
  sequence.computed = static_cast<std::int64_t>(match.blocks.size()) * blocks_.block_size();
  GroupState& group = *sequence.group;
  if (!group.started) {
    group.started = true;
    counters_.prefix_query_tokens += sequence.reads_cache() ? group.prompt_length() : 0;
    counters_.prefix_hit_tokens += sequence.computed;
  }
  grant(sequence, chunk(sequence));
}

StepPlan Scheduler::make_plan() {
  StepPlan plan;
  for (const InFlight& part : in_flight_) {
    refresh_slots(*part.sequence, blocks_.block_size());
    append_rows(*part.sequence, part.num_rows, plan);
    count(*part.sequence, part.num_rows - part.sequence->num_drafts);
  }
  counters_.steps += plan.empty() ? 0 : 1;
  return plan;
}

void Scheduler::count(const Sequence& sequence, std::int64_t num_rows) {
  const std::int64_t num_again =
      std::clamp<std::int64_t>(sequence.high_water - sequence.computed, 0, num_rows);
  counters_.tokens_recomputed += num_again;
  (sequence.is_prompt() ? counters_.tokens_prefill : counters_.tokens_decode) +=
      num_rows - num_again;
}

}  // namespace tandem::rollout
