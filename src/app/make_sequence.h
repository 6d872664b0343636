// The task of recipes/tiny.yaml: going on with a sequence of numbers modulo 5.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tandem::app {

struct SequenceFiles {
  std::filesystem::path train;
  std::filesystem::path validation;
  std::filesystem::path demonstrations;  // for a supervised warm-up
};

struct SequenceCounts {
  std::int64_t num_train = 0;
  std::int64_t num_validation = 0;
  std::int64_t num_demonstrations = 0;
};

/// Writes JSONL rows {"prompt": "a,b:5,n", "answer"} for all a, b in 0..4 and n in 1..6, whose
/// answer is the next n terms of the arithmetic sequence a, b ... modulo 5, shuffled by `seed`.
/// Every tenth goes to `validation`, so no question is in both. Files are replaced whole.
///
/// Demonstrations are of training questions: each once right and twice with a careless answer that
/// repeats b, so that a model which learnt them knows form and facts, but is mostly wrong. The
/// task is that of verl's end-to-end test (Apache-2.0), with smaller numbers.
SequenceCounts make_sequence(const SequenceFiles& files, std::uint64_t seed);

}  // namespace tandem::app
