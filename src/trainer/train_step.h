// One RL update: trajectories with advantages to gradients, and the optimizer's step.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/spans.h"
#include "model/decoder.h"
#include "protocol/trajectory.h"
#include "trainer/loss_normalizer.h"
#include "trainer/optimizer.h"
#include "trainer/policy_loss.h"

namespace tandem::trainer {

/// One trajectory as the trainer needs it. Refers to the trajectory, which must outlive the call.
struct TrainSequence {
  const Trajectory* trajectory = nullptr;
  double advantage = 0;
  bool masked = false;  // left out of the loss and of its denominators
  std::string label;    // names the sample in messages: prompt id and sample index
};

struct TrainStepConfig {
  PolicyLossConfig loss;
  std::int64_t epochs = 1;                  // passes over the rollout
  std::int64_t minibatches = 1;             // optimizer steps a pass
  std::int64_t rows_per_microbatch = 4096;  // hard bound on the rows of one forward
  bool checkpoint_layers = false;           // recompute layers in backward
  bool keep_logits = false;                 // for backward, instead of computing them again
  bool keep_gradients = false;              // their memory, for the next step
  double temperature = 1;                   // of sampling
  std::int64_t num_ids = 0;                 // of the tokenizer; ids at or above it do not exist
  std::uint64_t seed = 0;
  SpanRecorder* spans = nullptr;                // not owned; where the parts of a step are recorded
  const model::ActivationTape* tape = nullptr;  // what the sampler kept of the rollout, or null
};

/// What one rollout's updates did. Sums are over all minibatches and epochs.
struct TrainStepReport {
  PolicyLossSums sums;                // of all updates
  PolicyLossSums first;               // of the first minibatch of the first pass: on-policy
  double clip_low_min = 1;            // smallest share of tokens clipped below, over the updates
  double clip_high_max = 0;           // largest share of tokens clipped above, over the updates
  double grad_norm = 0;               // of the last update, before clipping
  double learning_rate = 0;           // of the last update
  std::int64_t num_updates = 0;       // optimizer steps made
  std::int64_t num_empty = 0;         // minibatches without anything to learn
  std::int64_t num_skipped = 0;       // minibatches whose loss or gradient was not finite
  std::int64_t num_rows = 0;          // rows trained on, shared ones once
  std::int64_t num_sampled_rows = 0;  // of them, those whose forward pass was the sampler's
  std::int64_t num_zero_weight = 0;   // sequences counted but not computed
  double reference_s = 0;             // seconds in the reference's forward
  double optimizer_s = 0;             // seconds in the optimizer
  std::vector<std::string> problems;  // one line a fault: which samples, and why
};

/// Trains a decoder's weights in place on rollouts.
///
/// Losses are sums of token terms whose weights are fixed from the whole minibatch before the first
/// micro-batch, so micro-batches and packing change gradients by rounding alone. On the first
/// minibatch of the first pass the log-probabilities are the sampler's, bit for bit. Not thread
/// safe.
class PolicyTrainer {
 public:
  /// Gives the learning rate of the optimizer's k-th update, from 0.
  using LearningRate = std::function<double(std::int64_t)>;

  /// `reference` gives ref_logp where the loss has a KL term; it may be null where it has none. All
  /// must outlive the trainer.
  PolicyTrainer(model::Decoder& decoder,
                const model::Decoder* reference,
                AdamW& optimizer,
                const TrainStepConfig& config);

  /// The updates of one rollout. `step` keys the shuffle into minibatches.
  TrainStepReport step(std::span<const TrainSequence> sequences,
                       std::int64_t step,
                       const LearningRate& learning_rate);

 private:
  void update(std::span<const TrainSequence> minibatch,
              const LearningRate& learning_rate,
              TrainStepReport& report);
  PolicyLossSums run_microbatch(std::span<const TrainSequence> sequences,
                                const LossNormalizer& normalizer,
                                TrainStepReport& report);
  void apply(double rate,
             std::span<const TrainSequence> members,
             const LossNormalizer& normalizer,
             TrainStepReport& report);
  [[nodiscard]] std::string origin_of_fault(std::span<const TrainSequence> members,
                                            const LossNormalizer& normalizer);

  model::Decoder& decoder_;
  const model::Decoder* reference_;
  AdamW& optimizer_;
  TrainStepConfig config_;
};

}  // namespace tandem::trainer
