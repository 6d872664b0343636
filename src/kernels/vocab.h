// The output layer: logits, and the log-probabilities and entropies of chosen tokens without ever
// holding all logits.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/weight.h"

namespace tandem::kernels {

/// max and sum of exp(x / T - max) over a row of logits.
struct LogSumExp {
  float max = 0;
  float sum = 0;
};

/// The one reduction over the vocabulary that sampler and trainer share.
///
/// Over ids [0, n) in chunks of 1,024: each chunk's maximum, and its sum of exponentials by 16
/// lanes and a fixed tree; chunks are merged from left to right. `inverse_temperature` multiplies
/// first.
LogSumExp reduce_logits(const float* logits, std::int64_t n, float inverse_temperature);

/// log-probability of `logit` under that reduction: logit * inverse_temperature - max - log(sum).
float logprob_of(float logit, float inverse_temperature, const LogSumExp& total);

/// Logits in float32: x [R, H] times weight [V, H] transposed -> [R, V]. The chain is `linear`'s.
/// No gradient.
at::Tensor logits(const at::Tensor& x, const Weight& weight);

/// The ids a row is normalised over: all below `num_ids`, or a list.
struct RowSupport {
  std::vector<std::int32_t> only;    // sorted; when not empty, just these
  std::vector<std::int32_t> banned;  // sorted; else all but these
};

/// What is wanted of the rows: one term a (row, target) pair. A row may have several terms.
struct LogprobTerms {
  at::Tensor row;                   // [T] int64, into the rows of x
  at::Tensor target;                // [T] int32
  std::vector<RowSupport> support;  // empty: all ids for all rows; else one entry a row of x
  std::int64_t num_ids = 0;         // ids at or above it do not exist for the softmax (padding)
  double inverse_temperature = 1;
};

struct LogprobOutput {
  at::Tensor logprobs;   // [T] float32, differentiable
  at::Tensor entropies;  // [T] float32, of the term's row, in nats; differentiable
};

/// Log-probabilities of `terms` given the final hidden rows. x [R, H], weight [V, H].
///
/// Computed over blocks of rows and chunks of the vocabulary; backward recomputes the logits chunk
/// by chunk, so memory is a few MB. Values are those of reduce_logits and logprob_of on logits(x).
LogprobOutput token_logprobs(const at::Tensor& x, const Weight& weight, const LogprobTerms& terms);

}  // namespace tandem::kernels
