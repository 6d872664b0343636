// The embedded engine: continuous batching over a paged cache, on the trainer's own weights.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/phase.h"
#include "base/spans.h"
#include "model/decoder.h"
#include "rollout/kv_arena.h"
#include "rollout/scheduler.h"
#include "rollout/token_sampler.h"

namespace tandem::rollout {

struct EngineConfig {
  std::int64_t kv_bytes = 0;               // size of the arena; at least one block for each layer
  std::int32_t block_size = 16;            // tokens a block
  std::int64_t max_batched_tokens = 2048;  // rows of one step
  std::int64_t max_model_len = 0;          // longest sequence; 0: the decoder's positions
  std::int64_t num_ids = 0;                // of the tokenizer; ids at or above it are never drawn
  std::int64_t max_sequences = 256;        // samples that run at one time
  bool prefix_cache = true;
  SpanRecorder* spans = nullptr;  // not owned; where the parts of its steps are recorded
  SpeculationConfig speculation = {};
  model::ActivationTape* tape = nullptr;  // not owned; keeps what it has room for. Null: nothing
#ifdef TANDEM_DEBUG
  bool check_invariants = true;  // of the block manager and scheduler, after each step
#else
  bool check_invariants = false;  // of the block manager and scheduler, after each step
#endif
};

/// Samples from a decoder's weights, which the trainer may change in the other phase alone: they
/// are in the rollout phase from the engine's making to its end, but for its train phases.
///
/// What a request gets depends on its prompt, its settings, its random key and the weights alone:
/// not on other requests, chunking, the cache, or the number of threads. Not thread safe.
class Engine {
 public:
  /// `decoder` must outlive the engine. `text` makes detokenizers for stop strings; it may be null
  /// where no request has any.
  Engine(model::Decoder& decoder, const EngineConfig& config, TextSinkFactory text);

  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  ~Engine();

  /// Queues a group. Throws UserError for one that can never fit, with the numbers.
  void add(GroupRequest request);

  /// One forward pass and one token for every sequence that is ready; the samples that ended.
  /// Throws Error in the train phase, and when the weights changed without a switch of phases.
  std::vector<FinishedSample> step();

  /// Steps until nothing is left to do.
  std::vector<FinishedSample> run();

  [[nodiscard]] bool has_work() const { return scheduler_.has_work(); }
  [[nodiscard]] Scheduler& scheduler() { return scheduler_; }
  [[nodiscard]] Phase phase() const { return phase_; }

  /// Gives the cache's pages to the trainer. Throws Error while requests are running; paused ones
  /// are computed again when they go on.
  void enter_train_phase();

  /// Takes them back. Blocks of older weights are unreachable from now on.
  void enter_rollout_phase();

  /// Empties the prefix cache. Throws Error while requests are running.
  void forget_prefixes();

  /// The largest share of the cache in use since the last call.
  double take_kv_usage_peak() { return scheduler_.take_kv_usage_peak(); }

  [[nodiscard]] std::int64_t kv_bytes() const { return arena_.bytes(); }

 private:
  // By draw and sample: where the tape has the rows of a sequence, by position.
  using KeptRows = std::map<std::pair<std::int64_t, std::int32_t>, std::vector<std::int32_t>>;

  void set_phase(Phase phase);
  [[nodiscard]] at::Tensor forward(const StepPlan& plan);
  void copy_blocks(const StepPlan& plan);
  [[nodiscard]] model::TapeWriter tape_for(const StepPlan& plan);
  [[nodiscard]] KeptRows kept_rows(const StepPlan& plan) const;
  [[nodiscard]] std::vector<SampledToken> sample(const StepPlan& plan, const at::Tensor& hidden);

  model::Decoder& decoder_;
  EngineConfig config_;
  KvArena arena_;
  Scheduler scheduler_;
  std::vector<TokenSampler> samplers_;     // one a task of the sampling loop
  std::vector<std::int32_t> row_of_slot_;  // on the tape, or -1; empty without a tape
  Phase phase_ = Phase::kRollout;
};

/// Bytes of keys and values of one token.
std::int64_t kv_bytes_per_token(const model::ModelConfig& config, at::ScalarType dtype);

}  // namespace tandem::rollout
