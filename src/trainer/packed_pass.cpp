#include "trainer/packed_pass.h"

#include <algorithm>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include "base/allowed_logprob.h"
#include "base/error.h"
#include "kernels/vocab.h"

namespace tandem::trainer {
namespace {

template <class T>
at::Tensor to_tensor(const std::vector<T>& values, at::ScalarType type) {
  const auto size = static_cast<std::int64_t>(values.size());
  return at::from_blob(const_cast<T*>(values.data()), {size}, at::dtype(type)).clone();
}

model::RowBatch row_batch(const PackedTree& tree) {
  model::RowBatch batch;
  batch.ids = to_tensor(tree.ids, at::kInt);
  batch.paths.positions = to_tensor(tree.positions, at::kInt);
  batch.paths.path_start = to_tensor(tree.path_offset, at::kLong);
  batch.paths.key_slots = to_tensor(tree.key_rows, at::kInt);
  return batch;
}

// Where the tape has each row of the tree; nothing where it lacks one, or is of other weights.
model::TapeReader tape_reader(const PackedTree& tree,
                              std::span<const PackSequence> sequences,
                              const PassOptions& options,
                              WeightVersion version) {
  if (options.tape == nullptr || options.tape->version() != version) {
    return {};
  }
  std::vector<std::int32_t> rows(static_cast<std::size_t>(tree.num_rows()), -1);
  for (std::size_t s = 0; s < sequences.size(); ++s) {
    const auto path = tree.path(static_cast<std::int64_t>(s));
    const auto kept = sequences[s].kept_rows;
    for (std::size_t p = 0; p < std::min(path.size(), kept.size()); ++p) {
      rows[static_cast<std::size_t>(path[p])] = kept[p];
    }
  }
  if (std::ranges::find(rows, -1) != rows.end()) {
    return {};
  }
  return {options.tape, to_tensor(rows, at::kInt)};
}

// The rows that terms predict from, each once for each set that its terms were drawn from.
struct HeadRows {
  std::vector<std::int64_t> rows;         // of the tree
  std::vector<const AllowedSet*> sets;    // one a row; null where all ids are allowed
  std::vector<std::int64_t> row_of_term;  // index into `rows`
  bool restricted = false;                // some set is not "all"
};

using AllowedOfSequence = std::span<const std::vector<AllowedSet>* const>;

const AllowedSet* set_of(const PackTerm& term, AllowedOfSequence allowed) {
  const auto& sets = *allowed[static_cast<std::size_t>(term.sequence)];
  if (sets.empty() || sets[static_cast<std::size_t>(term.step)].is_all()) {
    return nullptr;
  }
  return &sets[static_cast<std::size_t>(term.step)];
}

bool same_set(const AllowedSet* a, const AllowedSet* b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

HeadRows head_rows(const PackedTree& tree, AllowedOfSequence allowed) {
  HeadRows head;
  std::size_t first = 0;  // where the entries of the current tree row begin; terms come by row
  for (const auto& term : tree.terms) {
    const AllowedSet* set = set_of(term, allowed);
    if (head.rows.empty() || head.rows.back() != term.row) {
      first = head.rows.size();
    }
    std::size_t entry = first;
    while (entry < head.rows.size() && !same_set(head.sets[entry], set)) {
      ++entry;
    }
    if (entry == head.rows.size()) {
      head.rows.push_back(term.row);
      head.sets.push_back(set);
      head.restricted = head.restricted || set != nullptr;
    }
    head.row_of_term.push_back(static_cast<std::int64_t>(entry));
  }
  return head;
}

kernels::LogprobTerms logprob_terms(const PackedTree& tree,
                                    const HeadRows& head,
                                    const PassOptions& options) {
  std::vector<std::int32_t> targets;
  for (const auto& term : tree.terms) {
    targets.push_back(term.target);
  }
  kernels::LogprobTerms terms;
  terms.row = to_tensor(head.row_of_term, at::kLong);
  terms.target = to_tensor(targets, at::kInt);
  terms.num_ids = options.num_ids;
  terms.keep_logits = options.keep_logits;
  terms.inverse_temperature = inverse_temperature(options.temperature);
  if (head.restricted) {
    for (const AllowedSet* set : head.sets) {
      terms.support.push_back(set == nullptr ? kernels::RowSupport()
                                             : kernels::RowSupport{set->ids, set->banned});
    }
  }
  return terms;
}

}  // namespace

PackedPass::PackedPass(const model::Decoder& decoder,
                       std::span<const PackSequence> sequences,
                       AllowedOfSequence allowed,
                       const PassOptions& options)
    : tree_(build_prefix_tree(sequences)) {
  TANDEM_CHECK(allowed.size() == sequences.size(),
               "{} lists of allowed sets for {} sequences",
               allowed.size(),
               sequences.size());
  for (const auto& sequence : sequences) {
    lengths_.push_back(sequence.ids.size() - static_cast<std::size_t>(sequence.prompt_length));
  }
  if (tree_.num_rows() == 0) {  // nothing was wanted
    term_logprobs_ = term_entropies_ = at::empty({0}, at::kFloat);
    logprobs_ = by_sequence(term_logprobs_);
    entropies_ = logprobs_;
    return;
  }
  const at::AutoGradMode grad_mode(options.with_gradient);
  const auto head = head_rows(tree_, allowed);
  const auto sampled = tape_reader(tree_, sequences, options, decoder.weights().version());
  was_sampled_ = sampled.tape != nullptr;
  const auto hidden =
      decoder
          .forward(row_batch(tree_),
                   {.checkpoint_layers = options.checkpoint_layers, .sampled = sampled})
          .index_select(0, to_tensor(head.rows, at::kLong));
  const auto output = kernels::token_logprobs(
      hidden, decoder.weights().head(), logprob_terms(tree_, head, options));
  term_logprobs_ = output.logprobs;
  term_entropies_ = output.entropies;
  logprobs_ = by_sequence(term_logprobs_.detach());
  entropies_ = by_sequence(term_entropies_.detach());
}

void PackedPass::backward(const TokenValues& logprob_slopes, const TokenValues& entropy_slopes) {
  std::vector<at::Tensor> outputs = {term_logprobs_};
  std::vector<at::Tensor> slopes = {by_term(logprob_slopes)};
  if (!entropy_slopes.empty()) {
    outputs.push_back(term_entropies_);
    slopes.push_back(by_term(entropy_slopes));
  }
  torch::autograd::backward(outputs, slopes);
  term_logprobs_.reset();
  term_entropies_.reset();
}

TokenValues PackedPass::by_sequence(const at::Tensor& values) const {
  TokenValues result;
  for (const auto length : lengths_) {
    result.emplace_back(length, 0.0F);
  }
  const float* data = values.data_ptr<float>();
  for (std::size_t i = 0; i < tree_.terms.size(); ++i) {
    const auto& term = tree_.terms[i];
    result[static_cast<std::size_t>(term.sequence)][static_cast<std::size_t>(term.step)] = data[i];
  }
  return result;
}

at::Tensor PackedPass::by_term(const TokenValues& values) const {
  auto result = at::empty({static_cast<std::int64_t>(tree_.terms.size())}, at::kFloat);
  float* data = result.data_ptr<float>();
  for (std::size_t i = 0; i < tree_.terms.size(); ++i) {
    const auto& term = tree_.terms[i];
    data[i] = values[static_cast<std::size_t>(term.sequence)][static_cast<std::size_t>(term.step)];
  }
  return result;
}

}  // namespace tandem::trainer
