// Log-probabilities and entropies over the vocabulary, block by block; see kernels/vocab.h.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/autograd.h"
#include "kernels/cpu/table.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "kernels/vocab.h"
#include "kernels/vocab_rows.h"

namespace tandem::kernels {
namespace {

constexpr std::int64_t kMaxBlockRows = kVocabBlock / kVocabChunk;

// What forward leaves for backward.
struct Call {
  at::Tensor x;  // [U, H] the rows that have terms
  Weight weight;
  std::vector<RowSupport> supports;  // `rows` points into it
  std::vector<VocabRow> rows;        // [U]
  std::int64_t num_rows = 0;         // of the caller's x
  std::int64_t num_terms = 0;
  std::int64_t num_ids = 0;
  float inverse_temperature = 1;
  bool keep_logits = false;
  std::vector<at::Tensor> kept;  // logits by block, where they are kept
};

// A rectangle of logits: rows by ids, whole chunks but for the last ids.
struct Block {
  std::int64_t first_row = 0;
  std::int64_t num_rows = 0;
  std::int64_t first_id = 0;
  std::int64_t num_ids = 0;
};

std::vector<Block> blocks_of(std::int64_t num_rows, std::int64_t num_ids) {
  std::vector<Block> blocks;
  for (std::int64_t row = 0; row < num_rows; row += kMaxBlockRows) {
    const std::int64_t rows = std::min(kMaxBlockRows, num_rows - row);
    const std::int64_t ids = kVocabBlock / rows / kVocabChunk * kVocabChunk;
    for (std::int64_t id = 0; id < num_ids; id += ids) {
      blocks.push_back({row, rows, id, std::min(ids, num_ids - id)});
    }
  }
  return blocks;
}

// The block's logits, in a part of `buffer` where there is one.   [num_rows, num_ids] contiguous
at::Tensor block_logits(const Call& call, const Block& block, const at::Tensor& buffer) {
  const std::int64_t size = block.num_rows * block.num_ids;
  const at::Tensor memory =
      buffer.defined() ? buffer.narrow(0, 0, size) : at::empty({size}, at::kFloat);
  const at::Tensor logits = memory.view({block.num_rows, block.num_ids});
  linear_into(call.x.narrow(0, block.first_row, block.num_rows),
              call.weight.value.narrow(0, block.first_id, block.num_ids),
              {},
              1,
              logits);
  return logits;
}

at::Tensor block_buffer(const std::vector<Block>& blocks, at::ScalarType type = at::kFloat) {
  std::int64_t size = 0;
  for (const Block& block : blocks) {
    size = std::max(size, block.num_rows * block.num_ids);
  }
  return at::empty({size}, type);
}

void finish_row(VocabRow& row, const VocabPartial* parts, std::int64_t num_parts, float scale) {
  if (row.is_listed()) {
    reduce_listed_row(row, scale);
    return;
  }
  const VocabPartial all = table().vocab.merge_chunks(parts, num_parts);
  row.total = {all.max, all.sum};
  row.entropy = std::log(all.sum) - all.weighted / all.sum;
}

// Reduces every row over its support, and keeps its targets' logits.
void reduce_rows(Call& call) {
  const auto num_rows = std::ssize(call.rows);
  const std::int64_t num_chunks = (call.num_ids + kVocabChunk - 1) / kVocabChunk;
  std::vector<VocabPartial> parts(num_rows * num_chunks);
  const std::vector<Block> blocks = blocks_of(num_rows, call.num_ids);
  const at::Tensor buffer = call.keep_logits ? at::Tensor() : block_buffer(blocks);
  for (const Block& block : blocks) {
    const at::Tensor block_of_logits = block_logits(call, block, buffer);
    if (call.keep_logits) {
      call.kept.push_back(block_of_logits);
    }
    auto* logits = block_of_logits.data_ptr<float>();
    compute_pool().parallel_for(block.num_rows, [&](std::int64_t i) {
      VocabRow& row = call.rows[block.first_row + i];
      float* row_logits = logits + i * block.num_ids;
      ban(row, block.first_id, block.num_ids, row_logits);
      keep_logits(row, block.first_id, block.num_ids, row_logits);
      VocabPartial* to = &parts[(block.first_row + i) * num_chunks + block.first_id / kVocabChunk];
      for (std::int64_t id = 0; id < block.num_ids && !row.is_listed(); id += kVocabChunk) {
        const std::int64_t size = std::min(kVocabChunk, block.num_ids - id);
        *to++ = table().vocab.reduce_chunk(row_logits + id, size, call.inverse_temperature);
      }
    });
  }
  compute_pool().parallel_for(num_rows, [&](std::int64_t i) {
    finish_row(call.rows[i], &parts[i * num_chunks], num_chunks, call.inverse_temperature);
  });
}

LogprobOutput outputs_of(const Call& call) {
  const LogprobOutput output = {at::empty({call.num_terms}, at::kFloat),
                                at::empty({call.num_terms}, at::kFloat)};
  auto* logprobs = output.logprobs.data_ptr<float>();
  auto* entropies = output.entropies.data_ptr<float>();
  for (const VocabRow& row : call.rows) {
    for (const RowTerm& term : row.terms) {
      logprobs[term.term] = logprob_of(term.logit, call.inverse_temperature, row.total);
      entropies[term.term] = row.entropy;
    }
  }
  return output;
}

// The gradients of a call's outputs, by term. Null: zero.
struct TermGradients {
  const float* logprobs = nullptr;
  const float* entropies = nullptr;

  [[nodiscard]] float logprob(const RowTerm& term) const {
    return logprobs == nullptr ? 0 : logprobs[term.term];
  }
  [[nodiscard]] float entropy(const RowTerm& term) const {
    return entropies == nullptr ? 0 : entropies[term.term];
  }
};

// Replaces a row's logits in a block by their gradients.
void differentiate_row(const Call& call,
                       const VocabRow& row,
                       const TermGradients& grads,
                       const Block& block,
                       float* logits) {
  VocabGradient gradient = {call.inverse_temperature, row.total.max, row.total.sum};
  gradient.log_sum = std::log(row.total.sum);
  gradient.entropy = row.entropy;
  for (const RowTerm& term : row.terms) {
    gradient.logprob_grad += grads.logprob(term);
    gradient.entropy_grad += grads.entropy(term);
  }
  if (row.is_listed()) {
    differentiate_listed_row(row, gradient, block.first_id, block.num_ids, logits);
  } else {
    ban(row, block.first_id, block.num_ids, logits);
    table().vocab.differentiate(logits, block.num_ids, gradient);
  }
  for (const RowTerm& term : row.terms) {
    const std::int64_t id = term.target - block.first_id;
    if (id >= 0 && id < block.num_ids) {
      logits[id] += call.inverse_temperature * grads.logprob(term);
    }
  }
}

// Memory for a block's gradients in the weight's type, in which products take both factors: as
// gradients of activations are, they are rounded to bfloat16 beside bfloat16 weights.
at::Tensor rounding_buffer(const std::vector<Block>& blocks, at::ScalarType type) {
  return type == at::kFloat ? at::Tensor() : block_buffer(blocks, type);
}

at::Tensor row_numbers(const std::vector<VocabRow>& rows) {
  const at::Tensor numbers = at::empty({std::ssize(rows)}, at::kLong);
  std::transform(
      rows.begin(), rows.end(), numbers.data_ptr<std::int64_t>(), [](const VocabRow& row) {
        return row.row;
      });
  return numbers;
}

// The gradient of the caller's x from that of the rows with terms.
at::Tensor scatter_rows(const Call& call, const at::Tensor& dx) {
  if (std::ssize(call.rows) == call.num_rows) {
    return dx.to(call.x.scalar_type());
  }
  const at::Tensor all = at::zeros({call.num_rows, call.x.size(1)}, call.x.options());
  return all.index_copy_(0, row_numbers(call.rows), dx.to(call.x.scalar_type()));
}

at::Tensor backward(const Call& call,
                    bool wants_dx,
                    const at::Tensor& dlogprobs,
                    const at::Tensor& dentropies) {
  const at::Tensor logprob_grads = dlogprobs.defined() ? dlogprobs.contiguous() : at::Tensor();
  const at::Tensor entropy_grads = dentropies.defined() ? dentropies.contiguous() : at::Tensor();
  const TermGradients grads = {
      dlogprobs.defined() ? logprob_grads.const_data_ptr<float>() : nullptr,
      dentropies.defined() ? entropy_grads.const_data_ptr<float>() : nullptr};
  const at::Tensor dx = at::zeros(call.x.sizes(), at::kFloat);
  const std::vector<Block> blocks = blocks_of(std::ssize(call.rows), call.num_ids);
  const at::Tensor buffer = call.keep_logits ? at::Tensor() : block_buffer(blocks);
  const at::Tensor rounded = rounding_buffer(blocks, call.weight.value.scalar_type());
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const Block& block = blocks[b];
    const at::Tensor dz = call.keep_logits ? call.kept[b] : block_logits(call, block, buffer);
    const at::Tensor gradient =
        rounded.defined() ? rounded.narrow(0, 0, dz.numel()).view(dz.sizes()) : dz;
    auto* data = dz.data_ptr<float>();
    compute_pool().parallel_for(block.num_rows, [&](std::int64_t i) {
      const VocabRow& row = call.rows[block.first_row + i];
      differentiate_row(call, row, grads, block, data + i * block.num_ids);
      if (rounded.defined()) {
        gradient[i].copy_(dz[i]);
      }
    });
    if (wants_dx) {
      add_input_gradient(gradient,
                         call.weight.value.narrow(0, block.first_id, block.num_ids),
                         dx.narrow(0, block.first_row, block.num_rows));
    }
    if (call.weight.grad.defined()) {
      add_weight_gradient(gradient,
                          call.x.narrow(0, block.first_row, block.num_rows),
                          call.weight.grad.narrow(0, block.first_id, block.num_ids));
    }
  }
  return wants_dx ? scatter_rows(call, dx) : at::Tensor();
}

at::Tensor gather_rows(const at::Tensor& x, const std::vector<VocabRow>& rows) {
  if (std::ssize(rows) == x.size(0)) {
    return x.contiguous();
  }
  return x.index_select(0, row_numbers(rows));
}

std::shared_ptr<Call> make_call(const at::Tensor& x,
                                const Weight& weight,
                                const LogprobTerms& terms) {
  TANDEM_CHECK(x.dim() == 2 && weight.value.dim() == 2 && x.size(1) == weight.value.size(1) &&
                   weight.value.is_contiguous() && x.scalar_type() == weight.value.scalar_type(),
               "token_logprobs: x [R, H] and weight [V, H] disagree");
  TANDEM_CHECK(terms.num_ids >= 1 && terms.num_ids <= weight.value.size(0),
               "token_logprobs: num_ids is {} of {}",
               terms.num_ids,
               weight.value.size(0));
  const auto call = std::make_shared<Call>();
  call->weight = {weight.value.detach(), weight.grad};
  call->supports = terms.support;
  call->rows = rows_with_terms(terms, call->supports, x.size(0));
  call->x = gather_rows(x.detach(), call->rows);
  call->num_rows = x.size(0);
  call->num_terms = terms.row.numel();
  call->num_ids = terms.num_ids;
  call->inverse_temperature = static_cast<float>(terms.inverse_temperature);
  return call;
}

}  // namespace

LogprobOutput token_logprobs(const at::Tensor& x, const Weight& weight, const LogprobTerms& terms) {
  const std::shared_ptr<Call> call = make_call(x, weight, terms);
  const bool wants_dx = wants_gradient(x);
  const bool differentiate = wants_dx || (recording() && weight.grad.defined());
  call->keep_logits = terms.keep_logits && differentiate;
  reduce_rows(*call);
  const LogprobOutput output = outputs_of(*call);
  if (differentiate) {
    record({output.logprobs, output.entropies},
           {x},
           [call, wants_dx](const std::vector<at::Tensor>& grads) {
             return std::vector<at::Tensor>{backward(*call, wants_dx, grads[0], grads[1])};
           });
  }
  return output;
}

}  // namespace tandem::kernels
