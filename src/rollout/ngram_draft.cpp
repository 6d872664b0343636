#include "rollout/ngram_draft.h"

#include <algorithm>

namespace tandem::rollout {
namespace {

// How many tokens before `end` equal those at the end of `ids`; counting stops at `limit`.
std::int64_t match_before(std::span<const TokenId> ids, std::int64_t end, std::int64_t limit) {
  const auto length = static_cast<std::int64_t>(ids.size());
  std::int64_t count = 0;
  while (count < std::min(limit, end) && ids[end - 1 - count] == ids[length - 1 - count]) {
    ++count;
  }
  return count;
}

}  // namespace

std::vector<TokenId> propose_ngram(std::span<const TokenId> ids,
                                   const SpeculationConfig& speculation,
                                   std::int64_t max_tokens) {
  std::int64_t longest = 0;
  std::int64_t follows = 0;
  for (auto end = static_cast<std::int64_t>(ids.size()) - 1;
       end > 0 && longest < speculation.lookup_max && max_tokens > 0;
       --end) {
    const std::int64_t count = match_before(ids, end, speculation.lookup_max);
    if (count > longest) {
      longest = count;
      follows = end;
    }
  }
  std::vector<TokenId> drafts;
  if (longest == 0 || longest < speculation.lookup_min) {
    return drafts;
  }
  const auto size = static_cast<std::int64_t>(ids.size());
  for (std::int64_t i = 0; i < max_tokens; ++i) {
    const std::int64_t place = follows + i;
    drafts.push_back(place < size ? ids[place] : drafts[static_cast<std::size_t>(place - size)]);
  }
  return drafts;
}

}  // namespace tandem::rollout
