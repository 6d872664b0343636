#include "rollout/token_bans.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace tandem::rollout {
namespace {

bool completes(std::span<const TokenId> output, std::span<const TokenId> word) {
  const auto begin = word.first(word.size() - 1);
  return output.size() >= begin.size() && std::ranges::equal(output.last(begin.size()), begin);
}

void sort_once(std::vector<TokenId>& ids, std::int64_t num_ids) {
  std::erase_if(ids, [&](TokenId id) { return id < 0 || id >= num_ids; });
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

}  // namespace

TokenBans token_bans(const SamplingParams& params,
                     std::span<const TokenId> output,
                     std::int64_t num_generated,
                     std::int64_t num_ids) {
  TokenBans bans;
  std::vector<TokenId>& banned = bans.set.banned;
  banned = params.banned_ids;
  for (const auto& word : params.bad_words) {
    if (completes(output, word)) {
      banned.push_back(word.back());
    }
  }
  if (!params.ignore_eos && num_generated < params.min_new_tokens) {
    banned.insert(banned.end(), params.stop_ids.begin(), params.stop_ids.end());
  }
  sort_once(banned, num_ids);
  if (!params.allowed_ids.empty()) {
    std::vector<TokenId> allowed = params.allowed_ids;
    sort_once(allowed, num_ids);
    std::ranges::set_difference(allowed, banned, std::back_inserter(bans.set.ids));
    banned.clear();
    bans.none = bans.set.ids.empty();
  }
  return bans;
}

}  // namespace tandem::rollout
