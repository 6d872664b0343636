#include "trainer/prefix_tree.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

#include "base/error.h"

namespace tandem::trainer {
namespace {

std::span<const TokenId> needed_ids(const PackSequence& sequence) {
  return sequence.ids.first(static_cast<std::size_t>(num_needed_rows(sequence)));
}

std::int64_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return end.first - a.begin();
}

// Adds sequences in prefix order: each continues the current path or branches off it.
class TreeBuilder {
 public:
  explicit TreeBuilder(std::span<const PackSequence> sequences) : sequences_(sequences) {
    tree_.sequence_offset.assign(sequences.size(), 0);
    tree_.sequence_rows.assign(sequences.size(), 0);
  }

  void add(std::int64_t sequence, std::int64_t rows, std::int64_t shared) {
    if (shared < static_cast<std::int64_t>(path_.size())) {
      end_leaf();
    }
    path_.resize(static_cast<std::size_t>(shared));
    const auto& ids = sequences_[static_cast<std::size_t>(sequence)].ids;
    for (std::int64_t p = shared; p < rows; ++p) {
      path_.push_back(static_cast<std::int32_t>(tree_.ids.size()));
      tree_.ids.push_back(ids[static_cast<std::size_t>(p)]);
      tree_.positions.push_back(static_cast<std::int32_t>(p));
    }
    tree_.sequence_rows[static_cast<std::size_t>(sequence)] = rows;
    on_path_.push_back(sequence);
    add_terms(sequence);
  }

  PackedTree finish() {
    if (!path_.empty()) {
      end_leaf();
    }
    std::ranges::sort(tree_.terms, {}, [](const PackTerm& term) {
      return std::tuple(term.row, term.sequence, term.step);
    });
    return std::move(tree_);
  }

 private:
  // The current path is complete. The sequences since the last branch lie on it, and the rows since
  // then take their keys from it.
  void end_leaf() {
    const auto offset = static_cast<std::int64_t>(tree_.key_rows.size());
    const auto first = static_cast<std::int32_t>(tree_.path_offset.size());
    const auto num_rows = static_cast<std::int32_t>(tree_.ids.size()) - first;
    tree_.key_rows.insert(tree_.key_rows.end(), path_.begin(), path_.end());
    tree_.path_offset.resize(tree_.ids.size(), offset);
    tree_.runs.push_back({.first_row = first, .num_rows = num_rows, .path_offset = offset});
    for (const auto sequence : on_path_) {
      tree_.sequence_offset[static_cast<std::size_t>(sequence)] = offset;
    }
    on_path_.clear();
  }

  void add_terms(std::int64_t index) {
    const PackSequence& sequence = sequences_[static_cast<std::size_t>(index)];
    for (std::size_t step = 0; step < sequence.wanted.size(); ++step) {
      if (sequence.wanted[step] != 0) {
        const auto position = static_cast<std::size_t>(sequence.prompt_length) + step;
        tree_.terms.push_back({.row = path_[position - 1],
                               .target = sequence.ids[position],
                               .sequence = static_cast<std::int32_t>(index),
                               .step = static_cast<std::int32_t>(step)});
      }
    }
  }

  std::span<const PackSequence> sequences_;
  PackedTree tree_;
  std::vector<std::int32_t> path_;     // rows from the root to where the last sequence ends
  std::vector<std::int64_t> on_path_;  // sequences added since the last leaf
};

}  // namespace

std::int64_t num_needed_rows(const PackSequence& sequence) {
  const auto length = static_cast<std::int64_t>(sequence.ids.size());
  const auto num_wanted = static_cast<std::int64_t>(sequence.wanted.size());
  TANDEM_CHECK(sequence.prompt_length >= 1 && sequence.prompt_length <= length,
               "a sequence of {} ids has a prompt of {}",
               length,
               sequence.prompt_length);
  TANDEM_CHECK(num_wanted == length - sequence.prompt_length,
               "a completion of {} ids has a mask of {}",
               length - sequence.prompt_length,
               num_wanted);
  std::int64_t last = num_wanted;
  while (last > 0 && sequence.wanted[static_cast<std::size_t>(last - 1)] == 0) {
    --last;
  }
  return last == 0 ? 0 : sequence.prompt_length + last - 1;
}

PrefixOrder prefix_order(std::span<const PackSequence> sequences) {
  PrefixOrder order;
  std::vector<std::span<const TokenId>> needed;
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    needed.push_back(needed_ids(sequences[i]));
    if (!needed.back().empty()) {
      order.sequences.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto ids_of = [&](std::int64_t i) { return needed[static_cast<std::size_t>(i)]; };
  std::ranges::stable_sort(order.sequences, [&](std::int64_t a, std::int64_t b) {
    return std::ranges::lexicographical_compare(ids_of(a), ids_of(b));
  });
  for (std::size_t k = 0; k < order.sequences.size(); ++k) {
    const auto ids = ids_of(order.sequences[k]);
    order.rows.push_back(static_cast<std::int64_t>(ids.size()));
    order.shared.push_back(k == 0 ? 0 : common_prefix(ids_of(order.sequences[k - 1]), ids));
  }
  return order;
}

PackedTree build_prefix_tree(std::span<const PackSequence> sequences) {
  const PrefixOrder order = prefix_order(sequences);
  const auto unshared = std::accumulate(order.rows.begin(), order.rows.end(), std::int64_t{0});
  TANDEM_CHECK(unshared <= std::numeric_limits<std::int32_t>::max(),
               "a pack of {} rows is too large",
               unshared);
  TreeBuilder builder(sequences);
  for (std::size_t k = 0; k < order.sequences.size(); ++k) {
    builder.add(order.sequences[k], order.rows[k], order.shared[k]);
  }
  return builder.finish();
}

}  // namespace tandem::trainer
