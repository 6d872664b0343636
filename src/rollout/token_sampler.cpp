#include "rollout/token_sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "rollout/row_scan.h"
#include "rollout/token_bans.h"

namespace tandem::rollout {
namespace {

// Probabilities come from fp32 logits: a sum this close to top_p has reached it.
constexpr double kReached = 1e-6;

double weight(const Candidate& candidate, float max, const SamplingParams& params) {
  return std::exp((static_cast<double>(candidate.logit) - max) / params.temperature);
}

// Index of the weight at which the running sum passes `target`. Where rounding keeps the sum below
// it, the last one that has a weight is meant.
template <class Weights>
std::int64_t draw_in(const Weights& weights, double target) {
  double sum = 0;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i];
    if (weights[i] > 0) {
      last = static_cast<std::int64_t>(i);
    }
    if (target < sum) {
      break;
    }
  }
  return last;
}

bool by_id(const Candidate& a, const Candidate& b) {
  return a.id < b.id;
}

}  // namespace

TokenSampler::TokenSampler(std::int64_t num_ids, VocabMath math) : num_ids_(num_ids), math_(math) {
  TANDEM_CHECK(num_ids > 0, "the sampler's vocabulary has {} ids", num_ids);
}

SampledToken TokenSampler::sample(const float* logits, const SamplingInput& input) {
  const SamplingParams& params = *input.params;
  const Row row(logits, static_cast<std::size_t>(num_ids_));
  reduced_row_ = nullptr;
  if (input.given >= 0) {
    return score(row, input);
  }
  SampledToken token;
  const auto output = input.context.last(
      std::min(input.context.size(), static_cast<std::size_t>(input.num_generated)));
  TokenBans bans = token_bans(params, output, input.num_generated, num_ids_);
  const Row masked = masked_by(bans.set, row);
  const Row shifted =
      shifts_.apply(masked, params, input.context, static_cast<std::int64_t>(output.size()));
  const RowScan scan = scan_row(shifted);
  const bool usable = scan.usable && (shifted.data() == logits || scan_row(row).usable);
  if (!usable || bans.none || scan.max <= kBannedLogit) {
    token.finite = false;
    return token;
  }
  token.allowed = std::move(bans.set);
  token.id = choose(shifted, scan.max, input, token.allowed);
  const float factor = inverse_temperature(params.temperature);
  if (params.shifts()) {
    token.sampled_logprob =
        logprob_of(shifted[token.id], factor, reduce_over(token.allowed, shifted, params));
  }
  report(masked, params, token);
  if (!params.shifts()) {
    token.sampled_logprob = token.logprob;
  }
  return token;
}

// A token of the prompt: nothing restricts it.
SampledToken TokenSampler::score(Row logits, const SamplingInput& input) {
  SampledToken token;
  token.id = input.given;
  token.finite = scan_row(logits).usable && input.given < num_ids_;
  if (!token.finite) {
    token.logprob = std::numeric_limits<float>::quiet_NaN();
    return token;
  }
  const float factor = inverse_temperature(input.params->temperature);
  const LogSumExp over = reduce(logits, *input.params);
  token.logprob = logprob_of(logits[token.id], factor, over);
  report_top(logits, input.params->num_prompt_logprobs, factor, over, token);
  return token;
}

TokenSampler::Row TokenSampler::masked_by(const AllowedSet& set, Row logits) {
  if (set.is_all()) {
    return logits;
  }
  if (!set.ids.empty()) {
    masked_.assign(logits.size(), kBannedLogit);
    for (const TokenId id : set.ids) {
      masked_[id] = logits[id];
    }
    return masked_;
  }
  masked_.assign(logits.begin(), logits.end());
  for (const TokenId id : set.banned) {
    masked_[id] = kBannedLogit;
  }
  return masked_;
}

// `allowed` becomes what the filters leave of it.
TokenId TokenSampler::choose(Row logits,
                             float max,
                             const SamplingInput& input,
                             AllowedSet& allowed) {
  const SamplingParams& params = *input.params;
  if (params.greedy()) {
    return static_cast<TokenId>(std::ranges::find(logits, max) - logits.begin());
  }
  if (!restricts(params)) {
    return draw_any(logits, params, random_uniform(input.key));
  }
  keep(logits, params);
  allowed = {};
  for (const Candidate& candidate : kept_) {
    allowed.ids.push_back(candidate.id);
  }
  return draw_kept(params, random_uniform(input.key));
}

bool TokenSampler::restricts(const SamplingParams& params) const {
  return (params.top_k > 0 && params.top_k < num_ids_) || params.top_p < 1 || params.min_p > 0;
}

void TokenSampler::keep(Row logits, const SamplingParams& params) {
  if (params.top_k > 0 && params.top_k < num_ids_) {
    keep_of_top_k(logits, params);
  } else {
    keep_of_all(logits, params);
  }
  std::ranges::sort(kept_, by_id);
}

void TokenSampler::keep_of_top_k(Row logits, const SamplingParams& params) {
  top_candidates(logits, params.top_k, kept_);
  double total = 0;
  for (const Candidate& candidate : kept_) {
    total += weight(candidate, kept_.front().logit, params);
  }
  kept_.resize(cut(params, total));
}

// Each filter keeps a head of the order (logit descending, id ascending), so that it is enough to
// look at more and more of that head until the cut falls inside.
void TokenSampler::keep_of_all(Row logits, const SamplingParams& params) {
  const double total = params.top_p < 1 ? reduce(logits, params).sum : 0;
  for (const std::int64_t count :
       {std::int64_t{64}, std::int64_t{512}, AllowedSet::kMaxListed + 1}) {
    top_candidates(logits, count, kept_);
    const std::size_t num_kept = cut(params, total);
    if (num_kept < static_cast<std::size_t>(count)) {
      kept_.resize(num_kept);
      return;
    }
  }
  fail<UserError>("{} keeps more than {} ids: lower top_p, raise min_p, or set top_k",
                  params.top_p < 1 ? fmt::format("top_p = {}", params.top_p)
                                   : fmt::format("min_p = {}", params.min_p),
                  AllowedSet::kMaxListed);
}

// The draw and the report mostly want it of the same row: it is computed once.
LogSumExp TokenSampler::reduce(Row logits, const SamplingParams& params) {
  if (reduced_row_ != logits.data()) {
    reduced_ = math_.reduce(
        logits.data(), num_ids_, inverse_temperature(params.temperature), &reduced_chunks_);
    reduced_row_ = logits.data();
  }
  return reduced_;
}

// How many of kept_, which is in the order of the filters, top-p and min-p leave; at least one.
std::size_t TokenSampler::cut(const SamplingParams& params, double total) const {
  const double target = (params.top_p - kReached) * total;
  std::size_t num_kept = 0;
  double sum = 0;
  for (const Candidate& candidate : kept_) {
    const double w = weight(candidate, kept_.front().logit, params);
    const bool reached = params.top_p < 1 && sum >= target;
    if (num_kept > 0 && (reached || w < params.min_p)) {
      break;
    }
    sum += w;
    ++num_kept;
  }
  return num_kept;
}

TokenId TokenSampler::draw_kept(const SamplingParams& params, double uniform) {
  const float max = std::ranges::max_element(kept_, {}, &Candidate::logit)->logit;
  kept_weights_.clear();
  double total = 0;
  for (const Candidate& candidate : kept_) {
    kept_weights_.push_back(weight(candidate, max, params));
    total += kept_weights_.back();
  }
  return kept_[draw_in(kept_weights_, uniform * total)].id;
}

// First a chunk by the sums that the log-probability needs anyway, then an id in it: only that
// chunk's exponentials are computed again.
TokenId TokenSampler::draw_any(Row logits, const SamplingParams& params, double uniform) {
  const LogSumExp over = reduce(logits, params);
  chunk_sums_.clear();
  double total = 0;
  for (const LogSumExp& chunk : reduced_chunks_) {
    chunk_sums_.push_back(chunk.sum * std::exp(static_cast<double>(chunk.max) - over.max));
    total += chunk_sums_.back();
  }
  double left = uniform * total;
  std::size_t chunk = 0;
  while (chunk + 1 < chunk_sums_.size() && left >= chunk_sums_[chunk]) {
    left -= chunk_sums_[chunk];
    ++chunk;
  }
  while (chunk_sums_[chunk] == 0) {
    --chunk;  // rounding went past the last chunk that has a probability
  }
  // Below its own maximum: exponentials of an unlikely chunk would vanish below the row's.
  const float max = reduced_chunks_[chunk].max;
  const double scale = std::exp(static_cast<double>(over.max) - max);
  const std::int64_t begin = static_cast<std::int64_t>(chunk) * kVocabChunk;
  weights_.resize(static_cast<std::size_t>(std::min(kVocabChunk, num_ids_ - begin)));
  math_.exp_shifted(logits.data() + begin,
                    std::ssize(weights_),
                    inverse_temperature(params.temperature),
                    max,
                    weights_.data());
  return static_cast<TokenId>(begin + draw_in(weights_, left * scale));
}

LogSumExp TokenSampler::reduce_over(const AllowedSet& set,
                                    Row logits,
                                    const SamplingParams& params) {
  if (set.ids.empty()) {
    return reduce(logits, params);
  }
  listed_.clear();
  for (const TokenId id : set.ids) {
    listed_.push_back(logits[id]);
  }
  return reduce_listed(listed_, inverse_temperature(params.temperature));
}

void TokenSampler::report(Row logits, const SamplingParams& params, SampledToken& token) {
  const float factor = inverse_temperature(params.temperature);
  const LogSumExp over = reduce_over(token.allowed, logits, params);
  token.logprob = logprob_of(logits[token.id], factor, over);
  report_top(logits, params.num_top_logprobs, factor, over, token);
}

// The likeliest of token.allowed; behind them the token itself, where it is none of them.
void TokenSampler::report_top(
    Row logits, std::int64_t count, float factor, LogSumExp over, SampledToken& token) {
  if (count <= 0) {
    return;
  }
  const bool listed = !token.allowed.ids.empty();
  const Row row = listed ? Row(listed_) : logits;
  token.rank = std::ranges::count_if(row, [&](float x) { return x >= logits[token.id]; });
  top_candidates(row, count, top_);
  bool has_token = false;
  for (const Candidate& candidate : top_) {
    const TokenId id = listed ? token.allowed.ids[candidate.id] : candidate.id;
    token.top.emplace_back(id, logprob_of(candidate.logit, factor, over));
    has_token |= id == token.id;
  }
  if (!has_token) {
    token.top.emplace_back(token.id, token.logprob);
  }
}

}  // namespace tandem::rollout
