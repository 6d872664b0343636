#include "kernels/vocab_rows.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <ATen/ATen.h>

#include "base/error.h"

namespace tandem::kernels {
namespace {

// Indices into a sorted list of its ids in [first, first + size).
struct IndexRange {
  std::int64_t first;
  std::int64_t last;
};

IndexRange ids_within(std::span<const std::int32_t> ids, std::int64_t first, std::int64_t size) {
  const auto low = std::lower_bound(ids.begin(), ids.end(), first);
  const auto high = std::lower_bound(low, ids.end(), first + size);
  return {low - ids.begin(), high - ids.begin()};
}

bool contains(const std::vector<std::int32_t>& sorted, std::int32_t id) {
  return std::binary_search(sorted.begin(), sorted.end(), id);
}

void check_list(const std::vector<std::int32_t>& ids, std::int64_t num_ids, std::int64_t row) {
  TANDEM_CHECK(std::is_sorted(ids.begin(), ids.end(), std::less_equal<>()) &&
                   (ids.empty() || (ids.front() >= 0 && ids.back() < num_ids)),
               "token_logprobs: the support of row {} is not sorted ids below {}",
               row,
               num_ids);
}

void check_target(const VocabRow& row, std::int32_t target, std::int64_t num_ids) {
  const bool supported =
      target >= 0 && target < num_ids &&
      (row.support == nullptr || (row.is_listed() ? contains(row.support->only, target)
                                                  : !contains(row.support->banned, target)));
  TANDEM_CHECK(supported,
               "token_logprobs: target {} of row {} is not among the ids that the row allows",
               target,
               row.row);
}

VocabRow make_row(std::int64_t index,
                  const std::vector<RowSupport>& supports,
                  std::int64_t num_ids) {
  VocabRow row;
  row.row = index;
  if (!supports.empty()) {
    row.support = &supports[index];
    check_list(row.support->only, num_ids, index);
    check_list(row.support->banned, num_ids, index);
    row.listed_logits.resize(row.support->only.size());
  }
  return row;
}

}  // namespace

std::vector<VocabRow> rows_with_terms(const LogprobTerms& terms,
                                      const std::vector<RowSupport>& supports,
                                      std::int64_t num_rows) {
  TANDEM_CHECK(supports.empty() || std::ssize(supports) == num_rows,
               "token_logprobs: {} supports for {} rows",
               supports.size(),
               num_rows);
  TANDEM_CHECK(terms.row.scalar_type() == at::kLong && terms.row.is_contiguous() &&
                   terms.target.scalar_type() == at::kInt && terms.target.is_contiguous() &&
                   terms.row.sizes() == terms.target.sizes() && terms.row.dim() == 1,
               "token_logprobs: terms need rows in int64 and as many targets in int32");
  const std::span rows(terms.row.const_data_ptr<std::int64_t>(), terms.row.numel());
  const std::span targets(terms.target.const_data_ptr<std::int32_t>(), terms.target.numel());
  std::vector<std::int64_t> index_of_row(num_rows, -1);
  for (const std::int64_t row : rows) {
    TANDEM_CHECK(row >= 0 && row < num_rows, "token_logprobs: row {} of {}", row, num_rows);
    index_of_row[row] = 0;
  }
  std::vector<VocabRow> with_terms;
  for (std::int64_t row = 0; row < num_rows; ++row) {
    if (index_of_row[row] == 0) {
      index_of_row[row] = std::ssize(with_terms);
      with_terms.push_back(make_row(row, supports, terms.num_ids));
    }
  }
  for (std::int64_t t = 0; t < std::ssize(rows); ++t) {
    VocabRow& row = with_terms[index_of_row[rows[t]]];
    check_target(row, targets[t], terms.num_ids);
    row.terms.push_back({t, targets[t]});
  }
  return with_terms;
}

void ban(const VocabRow& row, std::int64_t first, std::int64_t size, float* logits) {
  if (row.support == nullptr || row.is_listed()) {
    return;
  }
  const IndexRange range = ids_within(row.support->banned, first, size);
  for (std::int64_t i = range.first; i < range.last; ++i) {
    logits[row.support->banned[i] - first] = kBannedLogit;
  }
}

void keep_logits(VocabRow& row, std::int64_t first, std::int64_t size, const float* logits) {
  for (RowTerm& term : row.terms) {
    if (term.target >= first && term.target < first + size) {
      term.logit = logits[term.target - first];
    }
  }
  if (row.is_listed()) {
    const IndexRange range = ids_within(row.support->only, first, size);
    for (std::int64_t i = range.first; i < range.last; ++i) {
      row.listed_logits[i] = logits[row.support->only[i] - first];
    }
  }
}

void reduce_listed_row(VocabRow& row, float inverse_temperature) {
  row.total = reduce_listed(row.listed_logits, inverse_temperature);
  double weighted = 0;
  for (const float logit : row.listed_logits) {
    const double shifted = double{logit * inverse_temperature} - row.total.max;
    const double e = std::exp(shifted);
    weighted += e > 0 ? e * shifted : 0;
  }
  row.entropy = static_cast<float>(std::log(double{row.total.sum}) - weighted / row.total.sum);
}

void differentiate_listed_row(const VocabRow& row,
                              const VocabGradient& gradient,
                              std::int64_t first,
                              std::int64_t size,
                              float* logits) {
  std::fill_n(logits, size, 0.0F);
  const IndexRange range = ids_within(row.support->only, first, size);
  for (std::int64_t i = range.first; i < range.last; ++i) {
    const float shifted = row.listed_logits[i] * gradient.inverse_temperature - gradient.max;
    const float p = std::exp(shifted) / gradient.sum;
    const float surprise = p > 0 ? shifted - gradient.log_sum + gradient.entropy : 0.0F;
    logits[row.support->only[i] - first] =
        -gradient.inverse_temperature * p *
        (gradient.logprob_grad + gradient.entropy_grad * surprise);
  }
}

}  // namespace tandem::kernels
