#include "trainer/prefix_tree.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <doctest/doctest.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "trainer/pack_sequences.h"

namespace tandem::trainer {
namespace {

Sequence all_wanted(std::vector<TokenId> prompt, const std::vector<TokenId>& completion) {
  Sequence s;
  s.prompt_length = static_cast<std::int64_t>(prompt.size());
  s.ids = std::move(prompt);
  s.ids.insert(s.ids.end(), completion.begin(), completion.end());
  s.wanted.assign(completion.size(), 1);
  return s;
}

// Few symbols and short lengths, so that prefixes, duplicates and prefixes of others are common.
std::vector<Sequence> random_forest(std::uint64_t seed) {
  std::uint32_t position = 0;
  const auto below = [&](std::uint64_t n) {
    return random_below({.seed = seed, .position = position++, .purpose = RandomPurpose::kMakeData},
                        n);
  };
  std::vector<Sequence> forest;
  const auto num_sequences = 1 + below(12);
  for (std::uint64_t i = 0; i < num_sequences; ++i) {
    Sequence s;
    const auto length = 1 + below(9);
    for (std::uint64_t t = 0; t < length; ++t) {
      s.ids.push_back(static_cast<TokenId>(below(2 + seed % 3)));
    }
    s.prompt_length = static_cast<std::int64_t>(1 + below(length));
    for (auto t = static_cast<std::size_t>(s.prompt_length); t < s.ids.size(); ++t) {
      s.wanted.push_back(below(4) == 0 ? 0 : 1);
    }
    forest.push_back(s);
  }
  return forest;
}

std::size_t num_distinct_prefixes(const std::vector<Sequence>& forest) {
  std::set<std::vector<TokenId>> prefixes;
  for (const auto& view : views(forest)) {
    for (std::int64_t n = 1; n <= num_needed_rows(view); ++n) {
      prefixes.insert({view.ids.begin(), view.ids.begin() + n});
    }
  }
  return prefixes.size();
}

void check_paths(const PackedTree& tree, const std::vector<PackSequence>& sequences) {
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const auto path = tree.path(static_cast<std::int64_t>(i));
    REQUIRE(static_cast<std::int64_t>(path.size()) == num_needed_rows(sequences[i]));
    for (std::size_t p = 0; p < path.size(); ++p) {
      const auto row = static_cast<std::size_t>(path[p]);
      CHECK(tree.ids[row] == sequences[i].ids[p]);
      CHECK(tree.positions[row] == static_cast<std::int32_t>(p));
      // The keys of the row are the path's rows up to it, whichever leaf its own list comes from.
      const auto keys =
          std::span(tree.key_rows).subspan(static_cast<std::size_t>(tree.path_offset[row]), p + 1);
      CHECK(std::ranges::equal(keys, path.first(p + 1)));
    }
  }
}

void check_terms(const PackedTree& tree, const std::vector<PackSequence>& sequences) {
  std::vector<PackTerm> want;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    for (std::size_t step = 0; step < sequences[i].wanted.size(); ++step) {
      if (sequences[i].wanted[step] != 0) {
        const auto p = static_cast<std::size_t>(sequences[i].prompt_length) + step;
        want.push_back({.row = tree.path(static_cast<std::int64_t>(i))[p - 1],
                        .target = sequences[i].ids[p],
                        .sequence = static_cast<std::int32_t>(i),
                        .step = static_cast<std::int32_t>(step)});
      }
    }
  }
  std::ranges::stable_sort(want, {}, &PackTerm::row);
  CHECK(tree.terms == want);
}

void check_runs(const PackedTree& tree) {
  std::int32_t next = 0;
  for (const auto& run : tree.runs) {
    CHECK(run.first_row == next);
    CHECK(run.num_rows > 0);
    for (auto r = run.first_row; r < run.first_row + run.num_rows; ++r) {
      const auto row = static_cast<std::size_t>(r);
      CHECK(tree.path_offset[row] == run.path_offset);
      CHECK(tree.positions[row] ==
            tree.positions[static_cast<std::size_t>(run.first_row)] + r - run.first_row);
    }
    next += run.num_rows;
  }
  CHECK(next == tree.num_rows());
}

TEST_CASE("random forests unroll to their sequences with one row a distinct prefix") {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    CAPTURE(seed);
    const auto forest = random_forest(seed);
    const auto sequences = views(forest);
    const auto tree = build_prefix_tree(sequences);
    CHECK(static_cast<std::size_t>(tree.num_rows()) == num_distinct_prefixes(forest));
    CHECK(tree.positions.size() == tree.ids.size());
    CHECK(tree.path_offset.size() == tree.ids.size());
    check_paths(tree, sequences);
    check_terms(tree, sequences);
    check_runs(tree);
  }
}

TEST_CASE("a prompt with two answers: the prompt once, no row for a last token") {
  const std::vector<Sequence> forest = {all_wanted({7, 8}, {1, 2, 3}), all_wanted({7, 8}, {1, 5})};
  const auto tree = build_prefix_tree(views(forest));
  // 7 8 1 are shared; then 2 on the longer one. 3 and 5 predict nothing.
  CHECK(tree.ids == std::vector<TokenId>{7, 8, 1, 2});
  CHECK(tree.positions == std::vector<std::int32_t>{0, 1, 2, 3});
  CHECK(tree.runs == std::vector<PackRun>{{.first_row = 0, .num_rows = 4, .path_offset = 0}});
  CHECK(tree.key_rows == std::vector<std::int32_t>{0, 1, 2, 3});
  const std::vector<PackTerm> terms = {{.row = 1, .target = 1, .sequence = 0, .step = 0},
                                       {.row = 1, .target = 1, .sequence = 1, .step = 0},
                                       {.row = 2, .target = 2, .sequence = 0, .step = 1},
                                       {.row = 2, .target = 5, .sequence = 1, .step = 1},
                                       {.row = 3, .target = 3, .sequence = 0, .step = 2}};
  CHECK(tree.terms == terms);
}

TEST_CASE("branches start new runs whose keys lead back to the root") {
  const std::vector<Sequence> forest = {all_wanted({7}, {1, 2, 9}), all_wanted({7}, {4, 5, 9})};
  const auto tree = build_prefix_tree(views(forest));
  CHECK(tree.ids == std::vector<TokenId>{7, 1, 2, 4, 5});
  CHECK(tree.positions == std::vector<std::int32_t>{0, 1, 2, 1, 2});
  CHECK(tree.key_rows == std::vector<std::int32_t>{0, 1, 2, 0, 3, 4});
  CHECK(tree.path_offset == std::vector<std::int64_t>{0, 0, 0, 3, 3});
}

TEST_CASE("equal sequences collapse and keep their own terms") {
  const auto one = all_wanted({3, 4}, {5, 6});
  const auto tree = build_prefix_tree(views({one, one, one}));
  CHECK(tree.num_rows() == 3);
  CHECK(tree.terms.size() == 6);
  CHECK(tree.key_rows.size() == 3);
}

TEST_CASE("masked ends and sequences without a wanted token cost nothing") {
  auto masked_end = all_wanted({1, 2}, {3, 4, 5});
  masked_end.wanted = {1, 0, 0};
  auto all_masked = all_wanted({9, 9}, {3, 4});
  all_masked.wanted = {0, 0};
  const auto empty = all_wanted({8}, {});
  const auto tree = build_prefix_tree(views({masked_end, all_masked, empty}));
  CHECK(tree.ids == std::vector<TokenId>{1, 2});
  CHECK(tree.terms.size() == 1);
  CHECK(tree.path(1).empty());
  CHECK(tree.path(2).empty());
  CHECK(build_prefix_tree({}).num_rows() == 0);
}

TEST_CASE("masks and prompts that do not fit the ids are errors") {
  auto sequence = all_wanted({1, 2}, {3, 4});
  sequence.wanted.pop_back();
  CHECK_THROWS_AS(build_prefix_tree(views({sequence})), Error);
  sequence = all_wanted({}, {3, 4});
  CHECK_THROWS_AS(build_prefix_tree(views({sequence})), Error);
}

// A toy model in which a row depends on its whole path: h_r = sum over keys of e[id] * w[position],
// and a target's log-probability is that of softmax(h_r * u) over 4 ids.
struct Toy {
  static constexpr std::size_t kIds = 4;
  std::array<double, kIds> e = {0.3, -0.7, 1.1, 0.2};
  std::array<double, kIds> u = {0.5, -0.4, 0.9, -1.2};

  static double w(std::size_t position) {
    return 1.0 / (1.0 + 0.3 * static_cast<double>(position));
  }

  // Adds `weight` * log p(target) of the row with those keys, and its derivatives by e.
  double add_term(const std::vector<TokenId>& keys,
                  TokenId target,
                  double weight,
                  std::array<double, kIds>& de) const {
    const double h = hidden(keys);
    double sum = 0;
    double mean_u = 0;
    for (const double x : u) {
      sum += std::exp(h * x);
      mean_u += std::exp(h * x) * x;
    }
    const double dh = weight * (u[static_cast<std::size_t>(target)] - mean_u / sum);
    for (std::size_t p = 0; p < keys.size(); ++p) {
      de[static_cast<std::size_t>(keys[p])] += dh * w(p);
    }
    return weight * (h * u[static_cast<std::size_t>(target)] - std::log(sum));
  }

  [[nodiscard]] double hidden(const std::vector<TokenId>& keys) const {
    double h = 0;
    for (std::size_t p = 0; p < keys.size(); ++p) {
      h += e[static_cast<std::size_t>(keys[p])] * w(p);
    }
    return h;
  }
};

TEST_CASE("loss and gradient over the tree equal those of separate sequences") {
  const Toy toy;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto forest = random_forest(seed);
    const auto sequences = views(forest);
    const auto tree = build_prefix_tree(sequences);
    const auto weight = [](std::size_t sequence) {
      return 1.0 + 0.1 * static_cast<double>(sequence);
    };
    std::array<double, Toy::kIds> packed{};
    std::array<double, Toy::kIds> separate{};
    double packed_loss = 0;
    double separate_loss = 0;
    for (const auto& term : tree.terms) {
      const auto row = static_cast<std::size_t>(term.row);
      std::vector<TokenId> keys;
      for (std::int32_t p = 0; p <= tree.positions[row]; ++p) {
        const auto key = tree.key_rows[static_cast<std::size_t>(tree.path_offset[row] + p)];
        keys.push_back(tree.ids[static_cast<std::size_t>(key)]);
      }
      packed_loss +=
          toy.add_term(keys, term.target, weight(static_cast<std::size_t>(term.sequence)), packed);
    }
    for (std::size_t i = 0; i < forest.size(); ++i) {
      for (std::size_t step = 0; step < forest[i].wanted.size(); ++step) {
        const auto p = static_cast<std::ptrdiff_t>(forest[i].prompt_length) +
                       static_cast<std::ptrdiff_t>(step);
        if (forest[i].wanted[step] != 0) {
          const std::vector<TokenId> keys(forest[i].ids.begin(), forest[i].ids.begin() + p);
          separate_loss +=
              toy.add_term(keys, forest[i].ids[static_cast<std::size_t>(p)], weight(i), separate);
        }
      }
    }
    CHECK(packed_loss == doctest::Approx(separate_loss).epsilon(1e-12));
    for (std::size_t id = 0; id < Toy::kIds; ++id) {
      CHECK(std::abs(packed[id] - separate[id]) <= 1e-12);
    }
  }
}

}  // namespace
}  // namespace tandem::trainer
