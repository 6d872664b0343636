// Packs sequences into a prefix tree: tokens that they share from the start become one run of rows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "protocol/trajectory.h"

namespace tandem::trainer {

/// One sequence to pack. The spans must outlive the call they are given to.
struct PackSequence {
  std::span<const TokenId> ids{};  // the whole conversation, prompt first
  std::int64_t prompt_length = 0;  // ids[0, prompt_length) were given; at least 1
  std::span<const std::uint8_t>
      wanted{};  // an entry a completion id: 1 where its log-prob is needed
  std::span<const std::int32_t> kept_rows{};  // of the sampler's tape, by position; may be empty
};

/// Rows that the forward pass computes for a sequence on its own: all positions that come before
/// its last wanted id. 0 where nothing is wanted.
///
/// Throws Error when `wanted` does not fit the ids, or there is no prompt to predict from.
std::int64_t num_needed_rows(const PackSequence& sequence);

/// One log-probability to compute: that of `target` in the distribution which `row` predicts.
struct PackTerm {
  std::int32_t row = 0;
  TokenId target = 0;
  std::int32_t sequence = 0;  // index in the input
  std::int32_t step = 0;      // index in that sequence's completion

  bool operator==(const PackTerm&) const = default;
};

/// Consecutive rows with consecutive positions that share one entry of `key_rows`: what a kernel
/// may handle as a block of queries over the same keys.
struct PackRun {
  std::int32_t first_row = 0;
  std::int32_t num_rows = 0;
  std::int64_t path_offset = 0;

  bool operator==(const PackRun&) const = default;
};

/// The packed form of several sequences; R rows, one for each distinct prefix among them.
///
/// Rows are in depth-first order, parents before children. The row of position p attends to the
/// rows key_rows[path_offset[row] + j] for j in [0, p], the last of which is itself: the same
/// mapping from logical positions to rows that a block table gives.
struct PackedTree {
  std::vector<TokenId> ids;               // [R]
  std::vector<std::int32_t> positions;    // [R] logical position, from 0 at the root
  std::vector<std::int64_t> path_offset;  // [R] into key_rows
  std::vector<std::int32_t> key_rows;     // the rows of each leaf's path, root first, end to end
  std::vector<PackRun> runs;              // cover the rows in order
  std::vector<PackTerm> terms;            // by row, then sequence
  std::vector<std::int64_t> sequence_offset;  // [sequences] into key_rows: path of the sequence
  std::vector<std::int64_t> sequence_rows;    // [sequences] length of that path

  [[nodiscard]] std::int64_t num_rows() const { return static_cast<std::int64_t>(ids.size()); }

  /// The rows of a sequence, by logical position.
  [[nodiscard]] std::span<const std::int32_t> path(std::int64_t sequence) const {
    const auto i = static_cast<std::size_t>(sequence);
    return std::span(key_rows).subspan(static_cast<std::size_t>(sequence_offset[i]),
                                       static_cast<std::size_t>(sequence_rows[i]));
  }
};

/// The tree of those sequences. Any depth is shared, sampled tokens too; equal sequences become
/// one path and keep their own terms. A last token that predicts nothing has no row.
///
/// The result depends on the sequences and their order alone.
PackedTree build_prefix_tree(std::span<const PackSequence> sequences);

/// The sequences in the order of their needed ids (ties by index), and what neighbours share.
struct PrefixOrder {
  std::vector<std::int64_t> sequences;  // indices into the input, those without rows left out
  std::vector<std::int64_t> rows;       // needed rows of each
  std::vector<std::int64_t> shared;     // leading rows in common with the one before; 0 at first
};

/// In this order a set of sequences shares with a later one exactly the least `shared` on the way
/// from its last member, so that the rows of any packing can be counted without building it.
PrefixOrder prefix_order(std::span<const PackSequence> sequences);

}  // namespace tandem::trainer
