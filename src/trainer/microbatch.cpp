#include "trainer/microbatch.h"

#include <algorithm>
#include <functional>
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
  std::vector<std::size_t> places;  // ascending
  std::int64_t rows = 0;
};

// Best-fit over the units, the largest first; the rows that a unit adds are counted exactly.
class Packer {
 public:
  Packer(std::span<const PackSequence> sequences, std::int64_t row_budget)
      : sequences_(sequences), row_budget_(row_budget), order_(prefix_order(sequences)) {}

  [[nodiscard]] const PrefixOrder& order() const { return order_; }

  std::vector<std::vector<std::int64_t>> pack() {
    for (const Unit& unit : units_by_size()) {
      if (alone(unit) <= row_budget_) {
        add_unit(unit);
      } else {
        add_large_unit(unit);
      }
    }
    std::ranges::sort(bins_, {}, [](const Bin& bin) { return bin.places.front(); });
    std::vector<std::vector<std::int64_t>> result;
    for (const auto& bin : bins_) {
      auto& members = result.emplace_back();
      for (const auto place : bin.places) {
        members.push_back(order_.sequences[place]);
      }
      std::ranges::sort(members);
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

  [[nodiscard]] std::vector<Unit> units_by_size() const {
    std::vector<Unit> units;
    for (std::size_t k = 0; k < order_.sequences.size(); k = units.back().end) {
      units.push_back(unit_at(k));
    }
    std::ranges::stable_sort(units, std::greater(), [&](const Unit& unit) { return alone(unit); });
    return units;
  }

  // Rows of a unit in a micro-batch of its own.
  [[nodiscard]] std::int64_t alone(const Unit& unit) const {
    std::int64_t rows = order_.rows[unit.first];
    for (std::size_t k = unit.first + 1; k < unit.end; ++k) {
      rows += order_.rows[k] - order_.shared[k];
    }
    return rows;
  }

  // Leading rows that places i < k have in common.
  [[nodiscard]] std::int64_t common(std::size_t i, std::size_t k) const {
    const auto first = order_.shared.begin() + static_cast<std::ptrdiff_t>(i);
    return *std::min_element(first + 1, first + 1 + static_cast<std::ptrdiff_t>(k - i));
  }

  // Rows that a unit adds to a bin: its own, less what it shares with its neighbours there. Of what
  // the two neighbours share with each other nothing is gained.
  [[nodiscard]] std::int64_t added_rows(const Unit& unit, const Bin& bin) const {
    const auto after = std::ranges::lower_bound(bin.places, unit.first);
    std::int64_t rows = alone(unit);
    const bool has_before = after != bin.places.begin();
    const bool has_after = after != bin.places.end();
    rows -= has_before ? common(*(after - 1), unit.first) : 0;
    rows -= has_after ? common(unit.end - 1, *after) : 0;
    return rows + (has_before && has_after ? common(*(after - 1), *after) : 0);
  }

  // Into the bin where it adds the fewest rows; of several, the one that is then the fullest.
  void add_unit(const Unit& unit) {
    Bin* best = nullptr;
    std::int64_t fewest = alone(unit);
    for (auto& bin : bins_) {
      const std::int64_t rows = added_rows(unit, bin);
      const bool better = best == nullptr
                              ? rows <= fewest
                              : std::pair(rows, -bin.rows) < std::pair(fewest, -best->rows);
      if (bin.rows + rows <= row_budget_ && better) {
        best = &bin;
        fewest = rows;
      }
    }
    put(unit, fewest, best == nullptr ? bins_.emplace_back() : *best);
  }

  // Sequence by sequence into fresh micro-batches, so that those of each share the prompt.
  void add_large_unit(const Unit& unit) {
    bins_.emplace_back();
    for (std::size_t k = unit.first; k < unit.end; ++k) {
      const Unit one = {k, k + 1};
      std::int64_t rows = added_rows(one, bins_.back());
      if (bins_.back().rows + rows > row_budget_) {
        bins_.emplace_back();
        rows = alone(one);
      }
      put(one, rows, bins_.back());
    }
  }

  static void put(const Unit& unit, std::int64_t rows, Bin& bin) {
    bin.rows += rows;
    auto at = std::ranges::lower_bound(bin.places, unit.first);
    for (std::size_t k = unit.first; k < unit.end; ++k) {
      at = bin.places.insert(at, k) + 1;
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
