// An order of generated rows that a seed fixes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/counter_rng.h"

namespace tandem::app {

/// Fisher and Yates' shuffle, from the last row down.
template <class Row>
void shuffle_rows(std::vector<Row>& rows, std::uint64_t seed) {
  for (std::size_t i = rows.size(); i > 1; --i) {
    const auto j = random_below({.seed = seed, .draw = i, .purpose = RandomPurpose::kMakeData}, i);
    std::swap(rows[i - 1], rows[j]);
  }
}

}  // namespace tandem::app
