// Random ragged attention problems, and attention in plain LibTorch to compare with.
#pragma once

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include <ATen/ATen.h>

#include "kernels/attention.h"

namespace tandem::test {

/// Query rows as they are added, with their paths.
struct PathBuilder {
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> path_start;
  std::vector<std::int32_t> key_slots;

  /// Rows at positions [first, slots.size()) of a path of these slots.
  void add(const std::vector<std::int32_t>& slots, std::int32_t first) {
    for (auto j = first; j < static_cast<std::int32_t>(slots.size()); ++j) {
      positions.push_back(j);
      path_start.push_back(static_cast<std::int64_t>(key_slots.size()));
    }
    key_slots.insert(key_slots.end(), slots.begin(), slots.end());
  }

  [[nodiscard]] kernels::KeyPaths paths() const {
    return {at::tensor(positions, at::kInt),
            at::tensor(path_start, at::kLong),
            at::tensor(key_slots, at::kInt)};
  }
};

/// Attention row by row in LibTorch's own arithmetic, in q's type; differentiable.
inline at::Tensor plain_attention(const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const kernels::KeyPaths& paths,
                                  const kernels::AttentionOptions& options) {
  const std::int64_t repeats = q.size(1) / k.size(1);
  std::vector<at::Tensor> rows;
  for (std::int64_t r = 0; r < q.size(0); ++r) {
    const auto position = paths.positions[r].item<std::int64_t>();
    const std::int64_t first =
        options.window > 0 ? std::max<std::int64_t>(0, position - options.window + 1) : 0;
    const auto slots =
        paths.key_slots
            .narrow(0, paths.path_start[r].item<std::int64_t>() + first, position - first + 1)
            .to(at::kLong);
    const auto keys = k.index_select(0, slots).repeat_interleave(repeats, 1);
    const auto values = v.index_select(0, slots).repeat_interleave(repeats, 1);
    auto scores = (keys * q[r]).sum(-1) * options.scale;  // [keys, N]
    if (options.softcap > 0) {
      scores = options.softcap * (scores / options.softcap).tanh();
    }
    rows.push_back((scores.softmax(0).unsqueeze(-1) * values).sum(0));
  }
  return at::stack(rows);
}

/// Slots 0, 1, ... of the tokens of a few sequences, one list a sequence.
inline std::vector<std::vector<std::int32_t>> slots_in_order(const std::vector<int>& lengths) {
  std::vector<std::vector<std::int32_t>> slots;
  std::int32_t next = 0;
  for (const int length : lengths) {
    slots.emplace_back(length);
    std::iota(slots.back().begin(), slots.back().end(), next);
    next += length;
  }
  return slots;
}

inline double relative_l2(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.to(at::kDouble).norm()).item<double>();
}

}  // namespace tandem::test
