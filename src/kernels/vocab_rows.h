// The rows of a token_logprobs call: which have terms, what their softmax is over, what it came to.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cpu/vocab.h"
#include "kernels/vocab.h"

namespace tandem::kernels {

/// A term, seen from its row.
struct RowTerm {
  std::int64_t term = 0;
  std::int32_t target = 0;
  float logit = 0;  // of the target
};

/// A row that has terms.
struct VocabRow {
  std::int64_t row = 0;  // of x
  std::vector<RowTerm> terms;
  const RowSupport* support = nullptr;  // null: all ids
  std::vector<float> listed_logits;     // of support->only
  LogSumExp total;
  float entropy = 0;  // in nats

  [[nodiscard]] bool is_listed() const { return support != nullptr && !support->only.empty(); }
};

/// Rows with terms, in their order in x, their terms in the order given. Points into `supports`,
/// which are empty or one for each of the `num_rows` rows. Throws Error as `token_logprobs` says.
std::vector<VocabRow> rows_with_terms(const LogprobTerms& terms,
                                      const std::vector<RowSupport>& supports,
                                      std::int64_t num_rows);

/// Puts kBannedLogit in place of the row's banned ids among `logits`, of ids [first, first + size).
void ban(const VocabRow& row, std::int64_t first, std::int64_t size, float* logits);

/// Keeps what the row needs of those logits: its targets' and its listed ids'.
void keep_logits(VocabRow& row, std::int64_t first, std::int64_t size, const float* logits);

/// Sets total and entropy of a row whose ids are listed, from their logits.
void reduce_listed_row(VocabRow& row, float inverse_temperature);

/// Replaces the logits by the gradients of a row whose ids are listed, but for the targets' shares.
void differentiate_listed_row(const VocabRow& row,
                              const VocabGradient& gradient,
                              std::int64_t first,
                              std::int64_t size,
                              float* logits);

}  // namespace tandem::kernels
