// Which rows of which sequences are computed next: continuous batching with chunked prompts.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "rollout/admission.h"
#include "rollout/sequence.h"

namespace tandem::rollout {

struct SchedulerConfig {
  BlockManagerConfig blocks;
  std::int64_t max_batched_tokens = 2048;  // rows a step; at least max_sequences
  std::int64_t max_sequences = 256;        // samples that run at one time
  std::int64_t max_model_len = 0;          // prompt and output; 0: as long as the pool allows
  std::int64_t max_prompt_chunk = 0;       // rows of one prompt a step; 0: up to the budget
  bool check_each_step = false;            // check_invariants() after each commit
};

/// Totals since the scheduler was made, except where "now" is said.
struct SchedulerCounters {
  std::int64_t steps = 0;
  std::int64_t tokens_prefill = 0;     // prompt rows computed for the first time
  std::int64_t tokens_decode = 0;      // rows of sampled tokens computed for the first time
  std::int64_t tokens_recomputed = 0;  // rows whose KV had been given up
  std::int64_t prefix_query_tokens = 0;
  std::int64_t prefix_hit_tokens = 0;  // of those asked for, once a request
  std::int64_t preemptions = 0;
  std::int64_t aborts = 0;  // samples
  std::int64_t forks = 0;
  std::int64_t cow_copies = 0;  // forks that copied a partly filled block
  std::int64_t nan_rows = 0;    // samples ended by logits that are not finite
  std::int64_t running = 0;     // samples now
  std::int64_t waiting = 0;     // samples now
  double kv_usage = 0;          // share of the pool in use now
  double kv_usage_peak = 0;     // since it was last taken
};

/// Takes requests and turns them into steps: schedule(), forward and sampling by the caller,
/// commit(). Everything else happens between steps; abort() may be called at any time.
///
/// A step holds one row of each sample that is being decoded, then chunks of prompts in order of
/// arrival, up to the budget. A group starts when its prompt and the longest form of all its
/// samples fit beside what was promised to others, so that nothing that runs ever lacks a block;
/// the first that does not fit holds the queue. One that begins like a prompt whose rows are being
/// computed waits until it can share them. A group's prompt is computed once and forked.
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

  /// True while samples run or wait, or ended ones have not been taken.
  [[nodiscard]] bool has_work() const;

  /// The next step; empty when there is nothing to compute. commit() has to follow.
  [[nodiscard]] StepPlan schedule();

  /// Takes one token for each of `plan.samples`, in their order; returns what ended since the last
  /// time, each sample exactly once.
  std::vector<FinishedSample> commit(const StepPlan& plan, std::span<const SampledToken> sampled);

  /// What ended since the last time, for a caller that aborts and takes no further step.
  std::vector<FinishedSample> take_finished() { return std::exchange(finished_, {}); }

  /// The weights are now `version`, greater than before: cached prefixes of older ones are out of
  /// reach at once. Running samples go on; each token carries the version it was sampled with.
  void set_weight_version(WeightVersion version);
  [[nodiscard]] WeightVersion weight_version() const { return version_; }

  /// Empties the prefix cache, as must be done when the arena's pages were given back. False, with
  /// nothing changed, while anything runs.
  [[nodiscard]] bool reset_cache() { return blocks_.reset_cache(); }

  /// Takes the blocks of a running sample (or of the prompt that it is still part of) and puts it
  /// at the head of the queue, to be computed again. False when it does not run.
  bool preempt(std::int64_t draw, std::int32_t sample);

  [[nodiscard]] SchedulerCounters counters() const;

  /// The highest kv_usage after a step since the last call.
  double take_kv_usage_peak() { return std::exchange(counters_.kv_usage_peak, 0.0); }
  [[nodiscard]] const BlockManager& blocks() const { return blocks_; }

  /// Throws tandem::Error unless all books balance: see BlockManager, and promises to sequences.
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

  void place(Sequence& sequence, std::int64_t num_rows, StepPlan& plan);
  [[nodiscard]] std::int64_t chunk(const Sequence& sequence, std::int64_t num_placed) const;
  void admit(StepPlan& plan);
  void start(Sequence& sequence, const PrefixMatch& match);
  void reserve(Sequence& sequence, std::int64_t num_blocks);

  void accept(Sequence& sample, const SampledToken& token);
  void start_samples(Sequence& prompt, std::span<const SampledToken> tokens);
  Owned make_sample(GroupState& group, std::int32_t sample) const;
  void finish(Sequence& sample, Stop stop);
  void release(Sequence& sequence);
  void sweep();

  bool apply(const Abort& abort);
  bool abort_in(Sequence& sequence, const Abort& abort);
  [[nodiscard]] bool alive(const Abort& abort) const;

  SchedulerConfig config_;
  TextSinkFactory text_;
  BlockManager blocks_;
  WeightVersion version_ = 0;
  std::map<std::pair<std::int64_t, std::int32_t>, std::unique_ptr<GroupState>> groups_;
  std::deque<Owned> waiting_;   // first to start in front
  std::vector<Owned> running_;  // in the order they started
  std::int64_t promised_ = 0;   // sum of `reserved` over running_
  bool in_step_ = false;
  std::vector<InFlight> in_flight_;  // one for each sequence of the step
  std::vector<Abort> aborts_;        // that wait for the step's end
  std::vector<FinishedSample> finished_;
  SchedulerCounters counters_;
};

}  // namespace tandem::rollout
