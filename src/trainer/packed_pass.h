// One forward and backward pass over a packed tree: log-probabilities by sequence, and back.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/decoder.h"
#include "trainer/prefix_tree.h"

namespace tandem::trainer {

/// One value for each completion token of each sequence; 0 where no log-probability was wanted.
using TokenValues = std::vector<std::vector<float>>;

struct PassOptions {
  bool with_gradient = false;      // keep what `backward` needs
  bool checkpoint_layers = false;  // recompute layers in backward instead of keeping activations
  bool keep_logits = false;        // for the backward pass, instead of computing them again
  double temperature = 1;          // of the log-probabilities
  std::int64_t num_ids = 0;        // ids at or above it do not exist for the softmax
  const model::ActivationTape* tape = nullptr;  // where sequences' `kept_rows` are, or null
};

/// The forward pass, and the backward pass of it. Shared rows are computed once in both.
class PackedPass {
 public:
  /// `allowed` has one entry a sequence: the sets its completion tokens were drawn from, or an
  /// empty vector where all are "all". The spans need to live for the constructor alone.
  PackedPass(const model::Decoder& decoder,
             std::span<const PackSequence> sequences,
             std::span<const std::vector<AllowedSet>* const> allowed,
             const PassOptions& options);

  [[nodiscard]] const TokenValues& logprobs() const { return logprobs_; }
  [[nodiscard]] const TokenValues& entropies() const { return entropies_; }
  [[nodiscard]] std::int64_t num_rows() const { return tree_.num_rows(); }

  /// Whether the products came from the tape: it had all rows, of these weights.
  [[nodiscard]] bool was_sampled() const { return was_sampled_; }

  /// Adds the gradients of a loss to the weights, given its derivatives by each log-probability
  /// and, unless empty, by each entropy. Once, and only after a pass with gradients.
  void backward(const TokenValues& logprob_slopes, const TokenValues& entropy_slopes);

 private:
  [[nodiscard]] TokenValues by_sequence(const at::Tensor& values) const;
  [[nodiscard]] at::Tensor by_term(const TokenValues& values) const;

  PackedTree tree_;
  bool was_sampled_ = false;
  std::vector<std::size_t> lengths_;  // completion tokens of each sequence
  at::Tensor term_logprobs_;          // [T]
  at::Tensor term_entropies_;         // [T]
  TokenValues logprobs_;
  TokenValues entropies_;
};

}  // namespace tandem::trainer
