// Splits a step's sequences into minibatches (one update each) and those into micro-batches (one
// forward and backward pass each).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "trainer/prefix_tree.h"

namespace tandem::trainer {

/// Micro-batches of a minibatch: indices into `sequences`, ascending. Each packs into a prefix tree
/// of at most `row_budget` rows, and sequences that begin alike stay together where they fit.
///
/// The budget counts rows after sharing and is a hard bound. Units are the sequences with one
/// prompt. From the largest to the smallest, each goes into the micro-batch where it adds the
/// fewest rows, and of several such into the fullest. A unit that is too large on its own is filled
/// into fresh ones. Sequences without wanted tokens need no pass and are in none. The split is one
/// of the sequences' contents: their order in the input does not change it.
/// Throws UserError, with `name_of(index)` in it, for a sequence longer than the budget.
std::vector<std::vector<std::int64_t>> split_microbatches(
    std::span<const PackSequence> sequences,
    std::int64_t row_budget,
    const std::function<std::string(std::int64_t)>& name_of);

/// What the shuffle into minibatches depends on, and nothing else.
struct MinibatchKey {
  std::uint64_t seed = 0;
  std::int64_t step = 0;   // of the trainer; from 0
  std::int64_t epoch = 0;  // pass over this step's rollout; from 0
};

/// `num_units` units (sequences, or groups to keep prompts shared) in `num_minibatches` parts whose
/// sizes differ by at most one, larger ones first; every unit is in exactly one.
///
/// One minibatch keeps the order; more take a permutation from the counter random numbers, so that
/// a resumed run and every rank see the same. Throws UserError for more minibatches than units.
std::vector<std::vector<std::int64_t>> split_minibatches(std::int64_t num_units,
                                                         std::int64_t num_minibatches,
                                                         const MinibatchKey& key);

}  // namespace tandem::trainer
