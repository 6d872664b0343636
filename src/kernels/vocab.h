// The output layer: logits, and the log-probabilities and entropies of chosen tokens without ever
// holding all logits.
#pragma once

#include <cstdint>
#include <vector>

#include "base/allowed_logprob.h"
#include "kernels/weight.h"

namespace tandem::kernels {

using tandem::logprob_of;
using tandem::LogSumExp;

/// The one reduction over the vocabulary that sampler and trainer share.
///
/// Over ids [0, n), n >= 1, in chunks of kVocabChunk: each chunk's maximum, and its sum of
/// exponentials by 16 lanes and a fixed tree; chunks are merged from left to right.
/// `inverse_temperature` multiplies first. `chunks`, if not null, gets each chunk's own maximum and
/// sum.
LogSumExp reduce_logits(const float* logits,
                        std::int64_t n,
                        float inverse_temperature,
                        std::vector<LogSumExp>* chunks = nullptr);

/// out[i] = exp(logits[i] * inverse_temperature - max) for i in [0, n); `out` may be `logits`.
void exp_shifted(
    const float* logits, std::int64_t n, float inverse_temperature, float max, float* out);

/// Logits in float32: x [R, H] times weight [V, H] transposed -> [R, V]. The chain is `linear`'s.
/// No gradient.
at::Tensor logits(const at::Tensor& x, const Weight& weight);

/// The ids a row is normalised over: all below `num_ids`, or a list.
struct RowSupport {
  std::vector<std::int32_t> only;    // sorted; when not empty, just these
  std::vector<std::int32_t> banned;  // sorted; else all but these
};

/// Logits that are in memory at a time: 4 MB.
inline constexpr std::int64_t kVocabBlock = std::int64_t{1} << 20;

/// What is wanted of the rows: one term a (row, target) pair. A row may have several terms.
struct LogprobTerms {
  at::Tensor row;                   // [T] int64, into the rows of x
  at::Tensor target;                // [T] int32
  std::vector<RowSupport> support;  // empty: all ids for all rows; else one entry a row of x
  std::int64_t num_ids = 0;         // in [1, V]; ids from it on are padding, outside the softmax
  double inverse_temperature = 1;
  bool keep_logits = false;  // for backward: num_ids floats a row with terms, and a product less
};

struct LogprobOutput {
  at::Tensor logprobs;   // [T] float32, differentiable
  at::Tensor entropies;  // [T] float32, of the term's row, in nats; differentiable
};

/// Log-probabilities of `terms` given the final hidden rows. x [R, H], weight [V, H].
///
/// A row's entropy is that of its softmax over its support, at the temperature in use. Values are
/// those of reduce_logits on logits(x), of reduce_listed where a row's ids are listed, and of
/// logprob_of. Computed over blocks of rows and chunks of the vocabulary; backward recomputes the
/// logits unless they are kept, so at most kVocabBlock of them are in memory. Rows without terms
/// cost nothing.
///
/// Throws Error for a term out of range and for a target outside its row's support.
LogprobOutput token_logprobs(const at::Tensor& x, const Weight& weight, const LogprobTerms& terms);

}  // namespace tandem::kernels
