// The second half of the scheduler: what happens to sequences after the forward of a step.
#include <algorithm>
#include <iterator>
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
  if (token.rank > 0) {
    output.ranks.push_back(token.rank);
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
    sampled = sampled.subspan(keep_scores(sequence, part.num_rows, sampled));
    sequence.computed += part.num_rows - sequence.num_drafts;
    sequence.high_water = std::max(sequence.high_water, sequence.computed);
    blocks_.copied(*sequence.table);
    blocks_.commit(*sequence.table, sequence.ids, sequence.computed);
    if (sequence.computed < sequence.length()) {
      continue;
    }
    const auto num_drawn = static_cast<std::size_t>(sequence.width() + sequence.num_drafts);
    const auto tokens = sampled.first(num_drawn);
    sampled = sampled.subspan(num_drawn);
    if (sequence.is_prompt()) {
      start_samples(sequence, tokens);
    } else {
      accept_drawn(sequence, tokens);
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

// The first of `tokens` are those of the prompt that this step scored; returns how many.
std::size_t Scheduler::keep_scores(Sequence& sequence,
                                   std::int64_t num_rows,
                                   std::span<const SampledToken> tokens) {
  PromptLogprobs& scores = sequence.group->prompt;
  const auto num_before = static_cast<std::int64_t>(scores.logprobs.size());
  const std::int64_t end =
      std::min(sequence.computed + num_rows, num_before + sequence.num_to_score());
  for (std::int64_t p = num_before; p < end; ++p) {
    const SampledToken& token = tokens[static_cast<std::size_t>(p - num_before)];
    scores.logprobs.push_back(token.logprob);
    if (sequence.group->request.params.num_prompt_logprobs > 0) {
      scores.top.push_back(token.top);
    }
  }
  return static_cast<std::size_t>(std::max<std::int64_t>(0, end - num_before));
}

std::optional<Stop> Scheduler::accept(Sequence& sample, const SampledToken& token) {
  if (!token.finite) {
    ++counters_.nan_rows;
    return Stop{FinishReason::kError, std::nullopt, {}};
  }
  append_token(token, version_, sample.output);
  if (sample.group->request.params.shifts()) {
    sample.output.sampled_logprobs.push_back(token.sampled_logprob);
  }
  sample.ids.push_back(token.id);
  return sample.stop_rules->push(token.id, static_cast<std::int64_t>(sample.output.ids.size()));
}

// The token behind each guess is of use while the guesses were drawn: then the row that it was
// drawn from is the row of a run without guesses. The rows of the others count as never computed.
void Scheduler::accept_drawn(Sequence& sample, std::span<const SampledToken> tokens) {
  const std::vector<TokenId> drafts(sample.ids.end() - sample.num_drafts, sample.ids.end());
  sample.ids.resize(sample.ids.size() - drafts.size());
  sample.num_drafts = 0;
  std::optional<Stop> stop;
  for (std::size_t i = 0; i < tokens.size() && !stop; ++i) {
    if (i > 0 && tokens[i - 1].id != drafts[i - 1]) {
      break;
    }
    stop = accept(sample, tokens[i]);
    counters_.drafts_accepted += i > 0 ? 1 : 0;
    counters_.tokens_decode += i > 0 ? 1 : 0;
  }
  if (!drafts.empty()) {
    sample.computed = sample.length() - 1;
    sample.high_water = std::max(sample.high_water, sample.computed);
    blocks_.shrink(*sample.table, sample.length());
    sample.slots.resize(sample.table->blocks().size() *
                        static_cast<std::size_t>(blocks_.block_size()));
    blocks_.commit(*sample.table, sample.ids, sample.computed);
  }
  if (stop) {
    finish(sample, std::move(*stop));
  }
}

void Scheduler::start_samples(Sequence& prompt, std::span<const SampledToken> tokens) {
  GroupState& group = *prompt.group;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Owned sample = make_sample(group, group.open[i]);
    if (auto stop = accept(*sample, tokens[i])) {
      finish(*sample, std::move(*stop));
    } else {
      prompt.successors.push_back(std::move(sample));
    }
  }
  group.open.clear();
  prompt.done = true;
  share_blocks(prompt);
}

// The samples that go on after their first token get the prompt's blocks: the first one takes the
// table, the others fork it. Those that find no block for their copy are computed again later.
void Scheduler::share_blocks(Sequence& prompt) {
  Sequence* first = nullptr;
  for (const Owned& sample : prompt.successors) {
    sample->high_water = prompt.length();
    if (first == nullptr) {
      sample->table = std::move(*prompt.table);
      first = sample.get();
    } else {
      sample->table = blocks_.fork(*first->table, prompt.length());
      if (!sample->table) {
        ++counters_.preemptions;
        continue;
      }
      ++counters_.forks;
      counters_.cow_copies += sample->table->pending_copy() ? 1 : 0;
    }
    sample->computed = prompt.length();
    sample->root = prompt.root;
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
  sample.output.prompt = sample.group->prompt;
  finished_.push_back(std::move(sample.output));
  release(sample);
  sample.done = true;
  --sample.group->num_unfinished;
}

void Scheduler::release(Sequence& sequence) {
  sequence.table.reset();
  sequence.slots.clear();
}

// Replaces prompts that are done by their samples, and forgets what has ended.
void Scheduler::sweep() {
  Queue started;
  for (const Owned& sequence : running_) {
    std::ranges::move(sequence->successors, std::back_inserter(started));
    sequence->successors.clear();
  }
  const auto is_done = [](const Owned& sequence) { return sequence->done; };
  std::erase_if(running_, is_done);
  std::erase_if(waiting_, is_done);
  for (Owned& sample : started) {
    Queue& queue = sample->table ? running_ : waiting_;
    insert(std::move(sample), queue);
  }
  std::erase_if(groups_, [](const auto& item) { return item.second->num_unfinished == 0; });
}

}  // namespace tandem::rollout
