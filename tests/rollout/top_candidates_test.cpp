#include "rollout/top_candidates.h"

#include <algorithm>
#include <limits>

#include <doctest/doctest.h>

#include "base/allowed_logprob.h"
#include "base/counter_rng.h"

namespace tandem::rollout {
namespace {

std::vector<TokenId> top(const std::vector<float>& logits, std::int64_t count) {
  std::vector<Candidate> candidates;
  top_candidates(logits, count, candidates);
  std::vector<TokenId> ids;
  for (const Candidate& candidate : candidates) {
    CHECK(candidate.logit == logits[candidate.id]);
    ids.push_back(candidate.id);
  }
  return ids;
}

TEST_CASE("equal logits are taken in id order, never more than asked for") {
  CHECK(top({1, 3, 3, 2, 3}, 2) == std::vector<TokenId>{1, 2});
  CHECK(top({1, 3, 3, 2, 3}, 4) == std::vector<TokenId>{1, 2, 4, 3});
  CHECK(top({7, 7, 7}, 1) == std::vector<TokenId>{0});
}

TEST_CASE("a row that is too short gives what it has, impossible ids are none of it") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(top({1, 2}, 5) == std::vector<TokenId>{1, 0});
  CHECK(top({1, -infinity, 2, kBannedLogit}, 5) == std::vector<TokenId>{2, 0});
  CHECK(top({-infinity}, 3).empty());
  CHECK(top({1, 2}, 0).empty());
}

TEST_CASE("selection from 151,936 logits with many ties equals a full sort") {
  std::vector<float> logits(151936);
  for (std::size_t i = 0; i < logits.size(); ++i) {
    // 4,000 different values: every one about 38 times
    logits[i] = static_cast<float>(random_below({.position = static_cast<std::uint32_t>(i)}, 4000));
  }
  std::vector<TokenId> sorted(logits.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sorted[i] = static_cast<TokenId>(i);
  }
  std::ranges::stable_sort(sorted, [&](TokenId a, TokenId b) { return logits[a] > logits[b]; });
  for (const std::int64_t count : {1, 50, 4097}) {
    CHECK(top(logits, count) == std::vector<TokenId>(sorted.begin(), sorted.begin() + count));
  }
}

}  // namespace
}  // namespace tandem::rollout
