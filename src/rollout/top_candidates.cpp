#include "rollout/top_candidates.h"

#include <algorithm>

#include "base/allowed_logprob.h"

namespace tandem::rollout {
namespace {

bool likelier(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

}  // namespace

void top_candidates(std::span<const float> logits,
                    std::int64_t count,
                    std::vector<Candidate>& candidates) {
  candidates.clear();
  if (count <= 0) {
    return;
  }
  const auto limit = static_cast<std::size_t>(count);
  // The heap's front is the least likely one. A later id with an equal logit is behind it in the
  // order, so that only a greater logit can replace it.
  float bar = kBannedLogit;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!(logits[i] > bar)) {
      continue;
    }
    if (candidates.size() == limit) {
      std::ranges::pop_heap(candidates, likelier);
      candidates.pop_back();
    }
    candidates.push_back({static_cast<TokenId>(i), logits[i]});
    std::ranges::push_heap(candidates, likelier);
    if (candidates.size() == limit) {
      bar = candidates.front().logit;
    }
  }
  std::ranges::sort_heap(candidates, likelier);
}

}  // namespace tandem::rollout
