#include "app/bench/work.h"

#include <algorithm>

namespace tandem::app {
namespace {

// Of the backward pass, per forward: gradients of both factors of a product.
constexpr double kBackwardProducts = 2;

double as_double(std::int64_t value) {
  return static_cast<double>(value);
}

}  // namespace

double least_seconds(const Work& work, double product_gflops, const MachineLimits& limits) {
  double seconds = 0;
  for (const Stage& stage : work) {
    const double arithmetic = stage.product_flops / (product_gflops * 1e9) +
                              stage.attention_flops / (limits.fma_gflops * 1e9);
    seconds += std::max(arithmetic, stage.bytes / (limits.dram_gb_per_s * 1e9));
  }
  return seconds;
}

Stage total_of(const Work& work) {
  Stage total;
  for (const Stage& stage : work) {
    total.product_flops += stage.product_flops;
    total.attention_flops += stage.attention_flops;
    total.bytes += stage.bytes;
  }
  return total;
}

RowCounts count_tree_rows(std::span<const trainer::PackSequence> sequences) {
  const auto tree = trainer::build_prefix_tree(sequences);
  RowCounts counts;
  counts.rows = tree.num_rows();
  for (const std::int32_t position : tree.positions) {
    counts.keys += position + 1;
  }
  std::int32_t last = -1;
  for (const auto& term : tree.terms) {  // they come by row
    counts.head_rows += term.row != last ? 1 : 0;
    last = term.row;
  }
  return counts;
}

WorkCounter::WorkCounter(const model::ModelConfig& c, at::ScalarType dtype)
    : element_bytes_(static_cast<double>(at::elementSize(dtype))) {
  const double query = as_double(c.num_heads * c.head_dim);
  const double key_value = as_double(2 * c.num_kv_heads * c.head_dim);
  const double hidden = as_double(c.hidden_size);
  const double layers = as_double(c.num_layers);
  layer_parameters_ =
      layers * hidden * (2 * query + key_value + 3 * as_double(c.intermediate_size));
  head_parameters_ = as_double(c.vocab_size) * hidden;
  all_parameters_ = layer_parameters_ + head_parameters_ * (c.tied_embeddings ? 1 : 2);
  attention_flops_ = layers * 4 * query;  // a multiply-add for the score, one for the sum
  kv_bytes_ = layers * key_value * element_bytes_;
}

double WorkCounter::weight_bytes() const {
  return (layer_parameters_ + head_parameters_) * element_bytes_;
}

Stage WorkCounter::forward(const RowCounts& rows) const {
  Stage stage;
  stage.product_flops =
      2 * (as_double(rows.rows) * layer_parameters_ + as_double(rows.head_rows) * head_parameters_);
  stage.attention_flops = as_double(rows.keys) * attention_flops_;
  stage.bytes = (layer_parameters_ + (rows.head_rows > 0 ? head_parameters_ : 0)) * element_bytes_;
  return stage;
}

Stage WorkCounter::training(const RowCounts& rows, double sampled) const {
  Stage stage = forward(rows);
  stage.product_flops *= 1 - sampled + kBackwardProducts;
  stage.attention_flops *= 1 - sampled + kBackwardProducts;
  stage.bytes = 2 * stage.bytes + all_parameters_ * 4;  // read twice, and gradients written
  return stage;
}

Stage WorkCounter::optimizer() const {
  constexpr double kFloats = 7;  // 4 read and 3 written
  Stage stage;
  stage.bytes = all_parameters_ * (4 * kFloats + (element_bytes_ < 4 ? element_bytes_ : 0));
  return stage;
}

Work WorkCounter::prefill(const RolloutSizes& s) const {
  RowCounts rows;
  for (std::int64_t prompt = 0; prompt < s.prompts; ++prompt) {
    const std::int64_t known = prompt == 0 ? 0 : s.shared_tokens;
    rows.rows += s.prompt_tokens - known;
    rows.keys += s.prompt_tokens * (s.prompt_tokens + 1) / 2 - known * (known + 1) / 2;
  }
  rows.head_rows = s.prompts;
  return {forward(rows)};
}

Work WorkCounter::decode(const RolloutSizes& s) const {
  Work work;
  const std::int64_t batch = s.prompts * s.samples;
  for (std::int64_t token = 1; token < s.new_tokens; ++token) {
    Stage stage = forward({batch, batch * (s.prompt_tokens + token), batch});
    stage.bytes += kv_bytes_ * as_double(s.prompts * s.prompt_tokens + batch * token);
    work.push_back(stage);
  }
  return work;
}

Work WorkCounter::rollout(const RolloutSizes& s) const {
  Work work = prefill(s);
  const Work more = decode(s);
  work.insert(work.end(), more.begin(), more.end());
  return work;
}

}  // namespace tandem::app
