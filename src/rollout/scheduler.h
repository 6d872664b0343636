// Which rows of which sequences are computed next: continuous batching with chunked prompts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rollout/admission.h"
#include "rollout/scheduler_config.h"
#include "rollout/sequence.h"

namespace tandem::rollout {

/// Takes requests and turns them into steps: schedule(), forward and sampling by the caller,
/// commit(). Everything else happens between steps; abort() may be called at any time.
///
/// A step holds one row of each sample that is being decoded, then guessed tokens, then chunks of
/// prompts, up to the budget. What comes first is told by priority, then arrival. A sample that
/// finds no block takes those of the last that runs, which is computed again later; the first is
/// never a victim and fits alone, so that something always ends. A group starts when its whole
/// prompt fits beside a block for each running sample; the first that does not fit holds the
/// queue. One that begins like a prompt whose rows are being computed waits until it can share
/// them. A group's prompt is computed once and forked.
///
/// Not thread safe; the engine thread owns it.
class Scheduler {
 public:
  /// `text` makes the decoders for stop strings; without it requests with stop strings are refused.
  explicit Scheduler(const SchedulerConfig& config, TextSinkFactory text = {});

  /// Throws tandem::UserError, naming the numbers, for a request that can never run.
  void add(GroupRequest request);

  /// Ends all samples of `draw`, or one of them, with what they have so far. During a step it takes
  /// effect at its commit(); a sample that ends in that step by itself stays as it ended. False
  /// when nothing of that name is alive.
  bool abort(std::int64_t draw, std::optional<std::int32_t> sample = std::nullopt);

  /// True while a step would do something: compute, or hand out what ended.
  [[nodiscard]] bool has_work() const;

  /// True when no request is running or waiting, paused ones included.
  [[nodiscard]] bool is_idle() const { return running_.empty() && waiting_.empty(); }

  /// The next step; empty when there is nothing to compute. commit() has to follow.
  [[nodiscard]] StepPlan schedule();

  /// Takes one token for each of `plan.samples`, in their order; returns what ended since the last
  /// time, each sample exactly once.
  std::vector<FinishedSample> commit(const StepPlan& plan, std::span<const SampledToken> sampled);

  /// What ended since the last time, for a caller that aborts and takes no further step.
  std::vector<FinishedSample> take_finished() { return std::exchange(finished_, {}); }

  /// Between steps. A second pause() replaces the mode of the first.
  void pause(PauseMode mode);
  void resume() { paused_.reset(); }
  [[nodiscard]] bool is_paused() const { return paused_.has_value(); }

  /// The weights are now `version`, greater than before: cached prefixes of older ones are out of
  /// reach at once. Running samples go on; each token carries the version it was sampled with.
  void set_weight_version(WeightVersion version);
  [[nodiscard]] WeightVersion weight_version() const { return version_; }

  /// Empties the prefix cache, as must be done when the arena's pages were given back. False, with
  /// nothing changed, while any sequence holds blocks.
  [[nodiscard]] bool reset_cache() { return blocks_.reset_cache(); }

  /// Takes the blocks of a running sample (or of the prompt that it is still part of), to be
  /// computed again. False when it does not run.
  bool preempt(std::int64_t draw, std::int32_t sample);

  /// The same for everything that runs: afterwards no block is in use.
  void preempt_all();

  [[nodiscard]] SchedulerCounters counters() const;

  /// The highest kv_usage after a step since the last call.
  double take_kv_usage_peak() { return std::exchange(counters_.kv_usage_peak, 0.0); }
  [[nodiscard]] const BlockManager& blocks() const { return blocks_; }

  /// Throws tandem::Error unless all books balance: see BlockManager, and the order of the queues.
  void check_invariants() const;

 private:
  struct InFlight {
    Sequence* sequence;  // not owned
    std::int64_t num_rows;
  };
  struct Abort {
    std::int64_t draw;
    std::optional<std::int32_t> sample;
  };
  using Owned = std::unique_ptr<Sequence>;
  using Queue = std::vector<Owned>;  // by Sequence::order()

  bool grant_decoding();
  void grant_drafts();
  void grant_chunks();
  void admit();
  void grant(Sequence& sequence, std::int64_t num_rows);
  void count(const Sequence& sequence, std::int64_t num_rows);
  [[nodiscard]] std::int64_t chunk(const Sequence& sequence) const;
  [[nodiscard]] bool is_held_back(const Sequence& sequence, std::int64_t num_hits) const;
  [[nodiscard]] bool fits(const Sequence& sequence, const PrefixMatch& match) const;
  [[nodiscard]] StepPlan make_plan();
  void start(Sequence& sequence, const PrefixMatch& match);
  void take_blocks(Queue::iterator victim);
  static void insert(Owned sequence, Queue& queue);
  [[nodiscard]] static std::int64_t num_samples(const Queue& queue);

  static std::size_t keep_scores(Sequence& sequence,
                                 std::int64_t num_rows,
                                 std::span<const SampledToken> tokens);
  std::optional<Stop> accept(Sequence& sample, const SampledToken& token);
  void accept_drawn(Sequence& sample, std::span<const SampledToken> tokens);
  void start_samples(Sequence& prompt, std::span<const SampledToken> tokens);
  void share_blocks(Sequence& prompt);
  Owned make_sample(GroupState& group, std::int32_t sample) const;
  void finish(Sequence& sample, Stop stop);
  static void release(Sequence& sequence);
  void sweep();

  bool apply(const Abort& abort);
  bool abort_in(Sequence& sequence, const Abort& abort);
  [[nodiscard]] bool alive(const Abort& abort) const;

  SchedulerConfig config_;
  TextSinkFactory text_;
  BlockManager blocks_;
  WeightVersion version_ = 0;
  std::map<std::pair<std::int64_t, std::int32_t>, std::unique_ptr<GroupState>> groups_;
  std::int64_t num_added_ = 0;
  Queue waiting_;
  Queue running_;
  std::optional<PauseMode> paused_;
  bool in_step_ = false;
  std::int64_t budget_ = 0;          // rows that the step being planned can still take
  std::vector<InFlight> in_flight_;  // one for each sequence of the step
  std::vector<Abort> aborts_;        // that wait for the step's end
  std::vector<FinishedSample> finished_;
  SchedulerCounters counters_;
};

}  // namespace tandem::rollout
