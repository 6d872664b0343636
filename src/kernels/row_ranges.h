// Cuts the rows of a pass over memory into tasks of the pool.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/checks.h"

namespace tandem::kernels {

/// Calls `f(first, count)` over [0, rows) in ranges of about 32,768 elements, some 10 us each.
template <class F>
void for_row_ranges(std::int64_t rows, std::int64_t row_size, F&& f) {
  constexpr std::int64_t kTaskElements = 32768;
  const std::int64_t step =
      std::max<std::int64_t>(1, kTaskElements / std::max<std::int64_t>(row_size, 1));
  compute_pool().parallel_for(ceil_div(rows, step), [&](std::int64_t task) {
    f(task * step, std::min(step, rows - task * step));
  });
}

}  // namespace tandem::kernels
