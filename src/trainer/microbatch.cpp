#include "trainer/microbatch.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/counter_rng.h"
#include "base/error.h"

namespace tandem::trainer {
namespace {

// Places [first, end) of a PrefixOrder that share a prompt.
struct Unit {
  std::size_t first = 0;
  std::size_t end = 0;
};

struct Bin {
  std::vector<std::int64_t> sequences;
  std::int64_t rows = 0;
  std::size_t last = 0;  // place of its last sequence
};

// First-fit over the units in prefix order; the rows that a unit adds are counted exactly.
class Packer {
 public:
  Packer(std::span<const PackSequence> sequences, std::int64_t row_budget)
      : sequences_(sequences), row_budget_(row_budget), order_(prefix_order(sequences)) {}

  [[nodiscard]] const PrefixOrder& order() const { return order_; }

  std::vector<std::vector<std::int64_t>> pack() {
    for (std::size_t k = 0; k < order_.sequences.size();) {
      const Unit unit = unit_at(k);
      add_unit(unit);
      k = unit.end;
    }
    std::vector<std::vector<std::int64_t>> result;
    for (auto& bin : bins_) {
      std::ranges::sort(bin.sequences);
      result.push_back(std::move(bin.sequences));
    }
    return result;
  }

 private:
  [[nodiscard]] std::int64_t prompt_length(std::size_t k) const {
    return sequences_[static_cast<std::size_t>(order_.sequences[k])].prompt_length;
  }

  // A sequence that has rows has all rows of its prompt: the last one predicts the first answer id.
  [[nodiscard]] Unit unit_at(std::size_t first) const {
    std::size_t end = first + 1;
    while (end < order_.sequences.size() && prompt_length(end) == prompt_length(first) &&
           order_.shared[end] >= prompt_length(first)) {
      ++end;
    }
    return {first, end};
  }

  // Rows that a unit adds where `shared` rows of its first sequence are there already.
  [[nodiscard]] std::int64_t new_rows(const Unit& unit, std::int64_t shared) const {
    std::int64_t rows = order_.rows[unit.first] - shared;
    for (std::size_t k = unit.first + 1; k < unit.end; ++k) {
      rows += order_.rows[k] - order_.shared[k];
    }
    return rows;
  }

  // [k + 1] entries: at i + 1, the leading rows that places i and k have in common.
  [[nodiscard]] std::vector<std::int64_t> shared_up_to(std::size_t k) const {
    std::vector<std::int64_t> shared(order_.shared.begin(),
                                     order_.shared.begin() + static_cast<std::ptrdiff_t>(k) + 1);
    for (std::size_t i = k; i > 0; --i) {
      shared[i - 1] = std::min(shared[i - 1], shared[i]);
    }
    return shared;
  }

  void add_unit(const Unit& unit) {
    const auto shared = shared_up_to(unit.first);
    for (auto& bin : bins_) {
      const std::int64_t rows = new_rows(unit, shared[bin.last + 1]);
      if (bin.rows + rows <= row_budget_) {
        put(unit, rows, bin);
        return;
      }
    }
    if (const std::int64_t rows = new_rows(unit, 0); rows <= row_budget_) {
      put(unit, rows, bins_.emplace_back());
    } else {
      add_large_unit(unit);
    }
  }

  // Sequence by sequence into fresh micro-batches, so that those of each share the prompt.
  void add_large_unit(const Unit& unit) {
    bins_.emplace_back();
    for (std::size_t k = unit.first; k < unit.end; ++k) {
      const Unit one = {k, k + 1};
      std::int64_t rows = new_rows(one, bins_.back().rows == 0 ? 0 : order_.shared[k]);
      if (bins_.back().rows + rows > row_budget_) {
        bins_.emplace_back();
        rows = new_rows(one, 0);
      }
      put(one, rows, bins_.back());
    }
  }

  void put(const Unit& unit, std::int64_t rows, Bin& bin) {
    bin.rows += rows;
    bin.last = unit.end - 1;
    for (std::size_t k = unit.first; k < unit.end; ++k) {
      bin.sequences.push_back(order_.sequences[k]);
    }
  }

  std::span<const PackSequence> sequences_;
  std::int64_t row_budget_;
  PrefixOrder order_;
  std::vector<Bin> bins_;
};

std::vector<std::int64_t> permutation(std::int64_t n, const MinibatchKey& key) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  RandomKey random = {.seed = key.seed,
                      .draw = static_cast<std::uint64_t>(key.step),
                      .turn = static_cast<std::uint32_t>(key.epoch),
                      .purpose = RandomPurpose::kShuffleMinibatch};
  for (std::size_t i = order.size(); i > 1; --i) {
    random.position = static_cast<std::uint32_t>(i);
    std::swap(order[i - 1], order[random_below(random, i)]);
  }
  return order;
}

}  // namespace

std::vector<std::vector<std::int64_t>> split_microbatches(
    std::span<const PackSequence> sequences,
    std::int64_t row_budget,
    const std::function<std::string(std::int64_t)>& name_of) {
  TANDEM_CHECK(row_budget >= 1, "row_budget is {}", row_budget);
  Packer packer(sequences, row_budget);
  const PrefixOrder& order = packer.order();
  for (std::size_t k = 0; k < order.rows.size(); ++k) {
    if (order.rows[k] > row_budget) {
      fail<UserError>(
          "trainer.tokens_per_microbatch: {} needs {} tokens in one micro-batch and {} are "
          "allowed; raise it, or lower rollout.max_new_tokens or data.max_prompt_tokens",
          name_of(order.sequences[k]),
          order.rows[k],
          row_budget);
    }
  }
  return packer.pack();
}

std::vector<std::vector<std::int64_t>> split_minibatches(std::int64_t num_units,
                                                         std::int64_t num_minibatches,
                                                         const MinibatchKey& key) {
  TANDEM_CHECK(num_minibatches >= 1, "num_minibatches is {}", num_minibatches);
  if (num_minibatches > num_units) {
    fail<UserError>(
        "trainer.minibatches: {} minibatches cannot be made of {} units; lower it, or "
        "raise rollout.prompts_per_step",
        num_minibatches,
        num_units);
  }
  auto order = permutation(num_units, key);
  if (num_minibatches == 1) {
    std::ranges::sort(order);
  }
  std::vector<std::vector<std::int64_t>> parts;
  auto next = order.begin();
  for (std::int64_t i = 0; i < num_minibatches; ++i) {
    const auto size = num_units / num_minibatches + (i < num_units % num_minibatches ? 1 : 0);
    parts.emplace_back(next, next + size);
    next += size;
  }
  return parts;
}

}  // namespace tandem::trainer
