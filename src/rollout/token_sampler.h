// One row of logits to one token, its log-probability and the set it was drawn from.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "protocol/trajectory.h"
#include "rollout/logit_shifts.h"
#include "rollout/sampling_params.h"
#include "rollout/top_candidates.h"
#include "rollout/vocab_math.h"

namespace tandem::rollout {

/// What a draw depends on besides the logits.
struct SamplingInput {
  const SamplingParams* params = nullptr;  // not owned
  std::span<const TokenId> context = {};   // prompt and output so far, for penalties and bad words
  std::int64_t num_generated = 0;          // tokens of this request drawn before
  RandomKey key = {};                      // names the one random number that is used
  TokenId given = -1;  // of a prompt: nothing is drawn, its log-probability over all ids is told
};

struct SampledToken {
  TokenId id = -1;
  float logprob = 0;  // over `allowed` at the sampling temperature, before bias and penalties
  float sampled_logprob = 0;  // of the probability that the draw used: after them
  AllowedSet allowed;  // what padding, listed ids, bad words, minimum length and filters left
  std::vector<std::pair<TokenId, float>> top;  // likeliest ids of `allowed`; `id` is one of them
  std::int64_t rank = 0;  // ids at least as likely as `id`, itself among them; with `top` only
  bool finite = true;     // false: a NaN, +inf, or no id that is possible, and no token was drawn
};

/// Draws tokens. Order: padding, allowed and banned ids, bad words, minimum length, logit bias,
/// penalties, temperature, top-k, top-p (on what top-k left, renormalised), min-p, one uniform
/// number through the inverse distribution function over the kept ids in id order.
///
/// The same input gives the same token whatever else is in the batch. Not thread safe, because it
/// keeps its buffers: one a thread.
class TokenSampler {
 public:
  /// `num_ids`: size of the tokenizer. Logits behind it are padding, never read, never drawn.
  explicit TokenSampler(std::int64_t num_ids, VocabMath math = portable_vocab_math());

  /// `logits`: one row, fp32, at least num_ids of them. Throws tandem::UserError that names the
  /// setting when top_p or min_p leaves more ids than a token can carry.
  [[nodiscard]] SampledToken sample(const float* logits, const SamplingInput& input);

 private:
  using Row = std::span<const float>;

  [[nodiscard]] SampledToken score(Row logits, const SamplingInput& input);
  Row masked_by(const AllowedSet& set, Row logits);
  TokenId choose(Row logits, float max, const SamplingInput& input, AllowedSet& allowed);
  [[nodiscard]] bool restricts(const SamplingParams& params) const;
  void keep(Row logits, const SamplingParams& params);
  void keep_of_top_k(Row logits, const SamplingParams& params);
  void keep_of_all(Row logits, const SamplingParams& params);
  LogSumExp reduce(Row logits, const SamplingParams& params);
  [[nodiscard]] std::size_t cut(const SamplingParams& params, double total) const;
  [[nodiscard]] TokenId draw_kept(const SamplingParams& params, double uniform);
  [[nodiscard]] TokenId draw_any(Row logits, const SamplingParams& params, double uniform);
  LogSumExp reduce_over(const AllowedSet& set, Row logits, const SamplingParams& params);
  void report(Row logits, const SamplingParams& params, SampledToken& token);
  void report_top(
      Row logits, std::int64_t count, float factor, LogSumExp over, SampledToken& token);

  std::int64_t num_ids_;
  VocabMath math_;
  const float* reduced_row_ = nullptr;  // the row that reduced_ is of; not owned
  LogSumExp reduced_;
  std::vector<LogSumExp> reduced_chunks_;
  LogitShifts shifts_;
  std::vector<float> masked_;       // the row with banned ids
  std::vector<float> weights_;      // exp of a chunk of the row
  std::vector<float> listed_;       // logits of a listed set
  std::vector<Candidate> kept_;     // after top-k, top-p and min-p
  std::vector<double> chunk_sums_;  // of the whole row's exp
  std::vector<double> kept_weights_;
  std::vector<Candidate> top_;  // for the report
};

}  // namespace tandem::rollout
