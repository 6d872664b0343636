#include "trainer/microbatch.h"

#include <algorithm>
#include <set>
#include <string>

#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "trainer/pack_sequences.h"

namespace tandem::trainer {
namespace {

std::string name_of(std::int64_t i) {
  return "sample " + std::to_string(i);
}

// A group: one prompt of `prompt` tokens, answers of those lengths that differ from their start.
void add_group(std::vector<Sequence>& to, TokenId id, int prompt, const std::vector<int>& answers) {
  for (std::size_t i = 0; i < answers.size(); ++i) {
    Sequence s;
    s.prompt_length = prompt;
    s.ids.assign(static_cast<std::size_t>(prompt), id);
    s.ids.resize(static_cast<std::size_t>(prompt + answers[i]), 100 + static_cast<TokenId>(i));
    s.wanted.assign(static_cast<std::size_t>(answers[i]), 1);
    to.push_back(s);
  }
}

std::vector<PackSequence> pick(const std::vector<PackSequence>& from,
                               const std::vector<std::int64_t>& indices) {
  std::vector<PackSequence> result;
  for (const auto i : indices) {
    result.push_back(from[static_cast<std::size_t>(i)]);
  }
  return result;
}

TEST_CASE("groups stay whole and the budget counts shared rows") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 10, {6, 6, 6});  // 10 + 3 * 5 = 25 rows, 45 unshared
  add_group(sequences, 2, 10, {6, 6, 6});
  const auto split = split_microbatches(views(sequences), 25, name_of);
  CHECK(split == std::vector<std::vector<std::int64_t>>{{0, 1, 2}, {3, 4, 5}});
  CHECK(split_microbatches(views(sequences), 50, name_of).size() == 1);
}

TEST_CASE("a unit goes into the fullest micro-batch with room") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 10, {2});  // 11 rows
  add_group(sequences, 2, 13, {2});  // 14 rows
  add_group(sequences, 3, 5, {2});   // 6 rows, which fit beside either
  const auto split = split_microbatches(views(sequences), 20, name_of);
  CHECK(split == std::vector<std::vector<std::int64_t>>{{0}, {1, 2}});
}

TEST_CASE("the largest first: two micro-batches where the order of the ids would take three") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 7, {2});   // 8 rows
  add_group(sequences, 2, 5, {2});   // 6 rows
  add_group(sequences, 3, 11, {2});  // 12 rows
  add_group(sequences, 4, 13, {2});  // 14 rows
  const auto split = split_microbatches(views(sequences), 20, name_of);
  CHECK(split == std::vector<std::vector<std::int64_t>>{{0, 2}, {1, 3}});
}

TEST_CASE("a unit goes where it shares rows, not where it fills a gap") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 14, {2});           // 15 rows
  add_group(sequences, 2, 8, {2});            // 9 rows
  sequences.push_back(sequences[1]);          // the same beginning, another end: 5 rows, 1 new
  sequences.back().ids = {2, 2, 2, 2, 9, 9};  // would fill the first to 20 rows
  sequences.back().prompt_length = 5;
  sequences.back().wanted = {1};
  const auto split = split_microbatches(views(sequences), 20, name_of);
  CHECK(split == std::vector<std::vector<std::int64_t>>{{0}, {1, 2}});
}

TEST_CASE("a group larger than the budget is split, each part with its prompt") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 10, {6, 6, 6, 6});
  const auto split = split_microbatches(views(sequences), 20, name_of);
  CHECK(split == std::vector<std::vector<std::int64_t>>{{0, 1}, {2, 3}});
}

TEST_CASE("examples that all prompts share count once a micro-batch") {
  std::vector<Sequence> sequences;
  for (TokenId question = 0; question < 4; ++question) {
    Sequence s;
    s.ids.assign(20, 1);        // worked examples
    s.ids.push_back(question);  // the prompt's own token
    s.ids.push_back(50);
    s.prompt_length = 21;
    s.wanted = {1};
    sequences.push_back(s);
  }
  CHECK(split_microbatches(views(sequences), 24, name_of).size() == 1);
  CHECK(split_microbatches(views(sequences), 23, name_of).size() == 2);
}

TEST_CASE("random minibatches: everything once, never over the budget, the same every time") {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::uint32_t position = 0;
    const auto below = [&](std::uint64_t n) {
      return random_below(
          {.seed = seed, .position = position++, .purpose = RandomPurpose::kMakeData}, n);
    };
    std::vector<Sequence> sequences(1 + below(30));
    std::int64_t longest = 1;
    for (auto& s : sequences) {
      s.ids.resize(2 + below(10));
      std::ranges::generate(s.ids, [&] { return static_cast<TokenId>(below(2)); });
      s.prompt_length = static_cast<std::int64_t>(1 + below(s.ids.size()));
      s.wanted.assign(s.ids.size() - static_cast<std::size_t>(s.prompt_length), 1);
      longest = std::max(longest, static_cast<std::int64_t>(s.ids.size()) - 1);
    }
    const auto all = views(sequences);
    const auto budget = longest + static_cast<std::int64_t>(below(20));
    const auto split = split_microbatches(all, budget, name_of);
    std::multiset<std::int64_t> seen;
    for (const auto& part : split) {
      CHECK_FALSE(part.empty());
      CHECK(std::ranges::is_sorted(part));
      CHECK(build_prefix_tree(pick(all, part)).num_rows() <= budget);
      seen.insert(part.begin(), part.end());
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      CHECK(seen.count(static_cast<std::int64_t>(i)) == (num_needed_rows(all[i]) > 0 ? 1u : 0u));
    }
    CHECK(split == split_microbatches(all, budget, name_of));
  }
}

// The contents of each micro-batch, in an order of their own.
std::multiset<std::multiset<std::vector<TokenId>>> contents(
    const std::vector<PackSequence>& sequences,
    const std::vector<std::vector<std::int64_t>>& split) {
  std::multiset<std::multiset<std::vector<TokenId>>> result;
  for (const auto& part : split) {
    std::multiset<std::vector<TokenId>> ids;
    for (const auto& sequence : pick(sequences, part)) {
      ids.emplace(sequence.ids.begin(), sequence.ids.end());
    }
    result.insert(ids);
  }
  return result;
}

TEST_CASE("the order in which sequences come does not change what is packed with what") {
  std::vector<Sequence> sequences;
  for (TokenId group = 0; group < 9; ++group) {
    add_group(sequences, 1 + group, 4 + 3 * (group % 4), {2 + group % 3, 5, 3 + group % 2});
  }
  const auto split = split_microbatches(views(sequences), 40, name_of);
  CHECK(split.size() > 3);
  auto shuffled = sequences;
  for (std::size_t i = shuffled.size(); i > 1; --i) {
    std::swap(
        shuffled[i - 1],
        shuffled[random_below(
            {.position = static_cast<std::uint32_t>(i), .purpose = RandomPurpose::kMakeData}, i)]);
  }
  CHECK(contents(views(shuffled), split_microbatches(views(shuffled), 40, name_of)) ==
        contents(views(sequences), split));
}

TEST_CASE("a sequence longer than the budget is an error with its name and the remedy") {
  std::vector<Sequence> sequences;
  add_group(sequences, 1, 3, {2});
  add_group(sequences, 2, 10, {5});
  CHECK_THROWS_WITH_AS(split_microbatches(views(sequences), 13, name_of),
                       doctest::Contains("sample 1 needs 14 tokens"),
                       UserError);
  CHECK_NOTHROW(split_microbatches(views(sequences), 14, name_of));
  CHECK(split_microbatches({}, 1, name_of).empty());
}

TEST_CASE("146 units in 4 minibatches: sizes differ by one and nothing is lost") {
  const auto parts = split_minibatches(146, 4, {.seed = 3, .step = 5, .epoch = 1});
  REQUIRE(parts.size() == 4);
  CHECK(parts[0].size() == 37);
  CHECK(parts[3].size() == 36);
  std::set<std::int64_t> all;
  for (const auto& part : parts) {
    all.insert(part.begin(), part.end());
  }
  CHECK(all.size() == 146);
  CHECK(*all.begin() == 0);
  CHECK(*all.rbegin() == 145);
}

TEST_CASE("minibatches depend on seed, step and epoch alone") {
  const MinibatchKey key = {.seed = 1, .step = 2, .epoch = 3};
  const auto parts = split_minibatches(32, 2, key);
  CHECK(parts == split_minibatches(32, 2, key));
  CHECK(parts != split_minibatches(32, 2, {.seed = 2, .step = 2, .epoch = 3}));
  CHECK(parts != split_minibatches(32, 2, {.seed = 1, .step = 3, .epoch = 3}));
  CHECK(parts != split_minibatches(32, 2, {.seed = 1, .step = 2, .epoch = 4}));
}

TEST_CASE("one minibatch keeps the order, and more than there are units is an error") {
  CHECK(split_minibatches(3, 1, {}) == std::vector<std::vector<std::int64_t>>{{0, 1, 2}});
  CHECK_THROWS_WITH_AS(split_minibatches(3, 4, {}), doctest::Contains("minibatches"), UserError);
}

}  // namespace
}  // namespace tandem::trainer
