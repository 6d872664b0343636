#include "model/decoder.h"

#include <cmath>
#include <numbers>

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "kernels/elementwise.h"
#include "kernels/linear.h"
#include "kernels/norm.h"
#include "model/layer_checkpoint.h"

namespace tandem::model {
namespace {

// Llama 3 stretches slow frequencies by `factor`, keeps fast ones, and blends in between.
double llama3_frequency(const RopeConfig& rope, double frequency) {
  const double wavelength = 2.0 * std::numbers::pi / frequency;
  const auto original = static_cast<double>(rope.original_max_positions);
  if (wavelength < original / rope.high_freq_factor) {
    return frequency;
  }
  if (wavelength > original / rope.low_freq_factor) {
    return frequency / rope.factor;
  }
  const double blend = (original / wavelength - rope.low_freq_factor) /
                       (rope.high_freq_factor - rope.low_freq_factor);
  return (1.0 - blend) * frequency / rope.factor + blend * frequency;
}

kernels::RotaryTable make_rotary(const ModelConfig& config, std::int64_t num_positions) {
  const auto frequencies = rotary_frequencies(config.rope, config.head_dim);
  const auto half = static_cast<std::int64_t>(frequencies.size());
  kernels::RotaryTable table = {at::empty({num_positions, half}, at::kFloat),
                                at::empty({num_positions, half}, at::kFloat)};
  float* cosines = table.cos.data_ptr<float>();
  float* sines = table.sin.data_ptr<float>();
  for (std::int64_t p = 0; p < num_positions; ++p) {
    for (std::int64_t j = 0; j < half; ++j) {
      // The angle is rounded to float32 first, as every float32 implementation of the models does.
      const auto frequency = static_cast<float>(frequencies[static_cast<std::size_t>(j)]);
      const auto angle = static_cast<double>(static_cast<float>(p) * frequency);
      cosines[p * half + j] = static_cast<float>(std::cos(angle));
      sines[p * half + j] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

}  // namespace

std::vector<double> rotary_frequencies(const RopeConfig& rope, std::int64_t head_dim) {
  std::vector<double> frequencies;
  for (std::int64_t j = 0; j < head_dim / 2; ++j) {
    const double exponent = 2.0 * static_cast<double>(j) / static_cast<double>(head_dim);
    const double plain = std::pow(rope.theta, -exponent);
    switch (rope.type) {
      case RopeType::kDefault:
        frequencies.push_back(plain);
        break;
      case RopeType::kLinear:
        frequencies.push_back(plain / rope.factor);
        break;
      case RopeType::kLlama3:
        frequencies.push_back(llama3_frequency(rope, plain));
        break;
    }
  }
  return frequencies;
}

std::int64_t down_slices(std::int64_t intermediate_size) {
  for (std::int64_t slices = 8; slices > 1; --slices) {
    if (intermediate_size % slices == 0) {
      return slices;
    }
  }
  return 1;
}

Decoder::Decoder(WeightStore& weights, std::int64_t max_positions)
    : weights_(weights), rotary_(make_rotary(weights.config(), max_positions)) {}

kernels::Heads Decoder::heads_of(const at::Tensor& qkv,
                                 const LayerWeights& layer,
                                 const at::Tensor& positions) const {
  const auto& c = config();
  const kernels::HeadShape shape = {c.num_heads, c.num_kv_heads, c.head_dim};
  if (!c.qk_norm) {
    return kernels::split_rotated_heads(qkv, shape, positions, rotary_);
  }
  auto heads = kernels::split_heads(qkv, shape);
  heads.q = kernels::rms_norm(heads.q, layer.q_norm, c.rms_norm_eps);
  heads.k = kernels::rms_norm(heads.k, layer.k_norm, c.rms_norm_eps);
  heads.q = kernels::rotary(heads.q, positions, rotary_);
  heads.k = kernels::rotary(heads.k, positions, rotary_);
  return heads;
}

at::Tensor Decoder::product(const at::Tensor& x, const ProductOf& of, const Access& access) const {
  if (access.sampled.tape != nullptr) {
    const auto y = access.sampled.tape->take(of.layer, of.product, access.sampled.rows);
    return kernels::linear_known(y, x, of.weight, of.bias);
  }
  const auto y = kernels::linear(x, of.weight, of.bias, of.num_slices);
  if (access.kept.tape != nullptr) {
    access.kept.tape->put(of.layer, of.product, access.kept.first_row, y);
  }
  return y;
}

at::Tensor Decoder::attention_block(const at::Tensor& x,
                                    std::size_t index,
                                    const Access& access) const {
  const auto& c = config();
  const auto& layer = weights_.layers()[index];
  const std::int64_t rows = x.size(0);
  const auto qkv = product(x, {index, Product::kQkv, layer.qkv, layer.qkv_bias}, access);
  auto [q, k, v] = heads_of(qkv, layer, access.paths.positions);
  if (access.cache != nullptr) {
    kernels::store_rows(k, *access.write_slots, access.cache->k[index]);
    kernels::store_rows(v, *access.write_slots, access.cache->v[index]);
    k = access.cache->k[index];
    v = access.cache->v[index];
  }
  const kernels::AttentionOptions options = {
      .scale = 1.0 / std::sqrt(static_cast<double>(c.head_dim)),
      .window = c.sliding_window_of_layer[index]};
  const auto mixed =
      kernels::attention(q, k, v, access.paths, options).view({rows, c.num_heads * c.head_dim});
  return product(mixed, {index, Product::kO, layer.o, {}, c.num_kv_heads}, access);
}

at::Tensor Decoder::layer_forward(at::Tensor x, std::size_t index, const Access& access) const {
  const auto& c = config();
  const auto& layer = weights_.layers()[index];
  const auto first = kernels::rms_norm_residual(x, layer.input_norm, c.rms_norm_eps);
  x = kernels::add(first.x, attention_block(first.normed, index, access));
  const auto second = kernels::rms_norm_residual(x, layer.post_norm, c.rms_norm_eps);
  const auto gate_up = product(second.normed, {index, Product::kGateUp, layer.gate_up, {}}, access);
  const std::int64_t slices = down_slices(c.intermediate_size);
  return kernels::add(
      second.x,
      product(
          kernels::gated_silu(gate_up), {index, Product::kDown, layer.down, {}, slices}, access));
}

at::Tensor Decoder::forward(const RowBatch& batch, const TrainForwardOptions& options) const {
  auto x = kernels::embedding(batch.ids, weights_.embedding());
  for (std::size_t i = 0; i < weights_.layers().size(); ++i) {
    const auto layer =
        [this, i, paths = batch.paths, sampled = options.sampled](const at::Tensor& input) {
          return layer_forward(input, i, {.paths = paths, .sampled = sampled});
        };
    x = options.checkpoint_layers ? checkpoint_layer(x, layer) : layer(x);
  }
  return kernels::rms_norm(x, weights_.final_norm(), config().rms_norm_eps);
}

at::Tensor Decoder::forward_cached(const RowBatch& batch,
                                   const at::Tensor& write_slots,
                                   KvCache& cache,
                                   const TapeWriter& kept) const {
  const at::NoGradGuard no_grad;
  const Access access = {batch.paths, &write_slots, &cache, kept, {}};
  auto x = kernels::embedding(batch.ids, weights_.embedding());
  for (std::size_t i = 0; i < weights_.layers().size(); ++i) {
    x = layer_forward(x, i, access);
  }
  return kernels::rms_norm(x, weights_.final_norm(), config().rms_norm_eps);
}

}  // namespace tandem::model
