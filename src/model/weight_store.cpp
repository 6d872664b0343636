#include "model/weight_store.h"

#include <cmath>

#include <ATen/core/grad_mode.h>

#include "base/counter_rng.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace tandem::model {
namespace {

kernels::Weight zeros(at::IntArrayRef shape, at::ScalarType dtype) {
  return {at::zeros(shape, at::dtype(dtype)), {}};
}

bool ends_with(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

WeightStore::WeightStore(const ModelConfig& config, at::ScalarType dtype)
    : config_(config), dtype_(dtype), layers_(static_cast<std::size_t>(config.num_layers)) {
  TANDEM_CHECK(dtype == at::kFloat || dtype == at::kBFloat16,
               "working precision {} is neither float32 nor bfloat16",
               at::toString(dtype));
  embedding_ = zeros({config.vocab_size, config.hidden_size}, dtype);
  final_norm_ = zeros({config.hidden_size}, dtype);
  if (!config.tied_embeddings) {
    head_ = zeros({config.vocab_size, config.hidden_size}, dtype);
  }
  for (auto& layer : layers_) {
    allocate_layer(layer);
  }
}

void WeightStore::allocate_layer(LayerWeights& layer) const {
  const auto& c = config_;
  const std::int64_t qkv_rows = (c.num_heads + 2 * c.num_kv_heads) * c.head_dim;
  layer.input_norm = zeros({c.hidden_size}, dtype_);
  layer.qkv = zeros({qkv_rows, c.hidden_size}, dtype_);
  if (c.attention_bias) {
    layer.qkv_bias = zeros({qkv_rows}, dtype_);
  }
  if (c.qk_norm) {
    layer.q_norm = zeros({c.head_dim}, dtype_);
    layer.k_norm = zeros({c.head_dim}, dtype_);
  }
  layer.o = zeros({c.hidden_size, c.num_heads * c.head_dim}, dtype_);
  layer.post_norm = zeros({c.hidden_size}, dtype_);
  layer.gate_up = zeros({2 * c.intermediate_size, c.hidden_size}, dtype_);
  layer.down = zeros({c.hidden_size, c.intermediate_size}, dtype_);
}

std::vector<WeightStore::Slice> WeightStore::slices() {
  const auto& c = config_;
  const std::int64_t q_rows = c.num_heads * c.head_dim;
  const std::int64_t kv_rows = c.num_kv_heads * c.head_dim;
  std::vector<Slice> all;
  const auto whole = [&](const std::string& name, kernels::Weight& weight) {
    if (weight.value.defined()) {
      all.push_back({name, &weight, 0, weight.value.size(0)});
    }
  };
  whole("model.embed_tokens.weight", embedding_);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    auto& layer = layers_[i];
    const std::string prefix = fmt::format("model.layers.{}.", i);
    const auto qkv = [&](kernels::Weight& weight, const char* kind) {
      all.push_back({prefix + "self_attn.q_proj." + kind, &weight, 0, q_rows});
      all.push_back({prefix + "self_attn.k_proj." + kind, &weight, q_rows, kv_rows});
      all.push_back({prefix + "self_attn.v_proj." + kind, &weight, q_rows + kv_rows, kv_rows});
    };
    whole(prefix + "input_layernorm.weight", layer.input_norm);
    qkv(layer.qkv, "weight");
    if (layer.qkv_bias.value.defined()) {
      qkv(layer.qkv_bias, "bias");
    }
    whole(prefix + "self_attn.q_norm.weight", layer.q_norm);
    whole(prefix + "self_attn.k_norm.weight", layer.k_norm);
    whole(prefix + "self_attn.o_proj.weight", layer.o);
    whole(prefix + "post_attention_layernorm.weight", layer.post_norm);
    const std::int64_t width = c.intermediate_size;
    all.push_back({prefix + "mlp.gate_proj.weight", &layer.gate_up, 0, width});
    all.push_back({prefix + "mlp.up_proj.weight", &layer.gate_up, width, width});
    whole(prefix + "mlp.down_proj.weight", layer.down);
  }
  whole("model.norm.weight", final_norm_);
  whole("lm_head.weight", head_);
  return all;
}

void WeightStore::load(const Reader& read) {
  require_phase(phase_, Phase::kTrain, "loading weights");
  const at::NoGradGuard no_grad;
  for (const auto& slice : slices()) {
    const auto target = slice.weight->value.narrow(0, slice.begin, slice.rows);
    const auto source = read(slice.name);
    TANDEM_CHECK(source.sizes() == target.sizes(), "{}: read with another shape", slice.name);
    target.copy_(source);
  }
  bump();
}

void WeightStore::init_random(std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  const double residual = 1.0 / std::sqrt(2.0 * static_cast<double>(config_.num_layers));
  std::uint64_t index = 0;
  for (const auto& slice : slices()) {
    const auto target = slice.weight->value.narrow(0, slice.begin, slice.rows);
    const std::uint64_t tensor_index = index++;
    if (target.dim() == 1) {
      target.fill_(ends_with(slice.name, "bias") ? 0.0 : 1.0);
      continue;
    }
    const bool into_residual =
        ends_with(slice.name, "o_proj.weight") || ends_with(slice.name, "down_proj.weight");
    const double deviation = 0.02 * (into_residual ? residual : 1.0);
    auto numbers = at::empty(target.sizes(), at::kFloat);
    float* data = numbers.data_ptr<float>();
    compute_pool().parallel_for(numbers.size(0), [&](std::int64_t row) {
      for (std::int64_t i = row * numbers.size(1); i < (row + 1) * numbers.size(1); ++i) {
        const RandomKey key = {.seed = seed,
                               .draw = tensor_index,
                               .position = static_cast<std::uint32_t>(i),
                               .purpose = RandomPurpose::kInitWeights};
        data[i] = static_cast<float>(deviation * random_normal(key));
      }
    });
    target.copy_(numbers);
  }
  bump();
}

std::vector<std::pair<std::string, at::Tensor>> WeightStore::named_tensors() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& slice : const_cast<WeightStore*>(this)->slices()) {
    named.emplace_back(slice.name, slice.weight->value.narrow(0, slice.begin, slice.rows));
  }
  return named;
}

std::vector<std::pair<std::string, at::Tensor>> WeightStore::named_gradients() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (const auto& slice : const_cast<WeightStore*>(this)->slices()) {
    if (slice.weight->grad.defined()) {
      named.emplace_back(slice.name, slice.weight->grad.narrow(0, slice.begin, slice.rows));
    }
  }
  return named;
}

std::vector<WeightStore::Parameter> WeightStore::parameters() {
  std::vector<Parameter> all;
  for (const auto& slice : slices()) {
    if (slice.begin == 0) {
      all.push_back({slice.name, slice.weight});
    }
  }
  return all;
}

void WeightStore::zero_gradients() {
  for (const auto& parameter : parameters()) {
    auto& grad = parameter.weight->grad;
    if (grad.defined()) {
      grad.zero_();
    } else {
      grad = at::zeros(parameter.weight->value.sizes(), at::kFloat);
    }
  }
}

void WeightStore::drop_gradients() {
  for (const auto& parameter : parameters()) {
    parameter.weight->grad.reset();
  }
}

std::string WeightStore::dtype_name() const {
  return dtype_ == at::kFloat ? "float32" : "bfloat16";
}

std::int64_t WeightStore::num_parameters() const {
  std::int64_t count = 0;
  for (const auto& [name, tensor] : named_tensors()) {
    count += tensor.numel();
  }
  return count;
}

std::int64_t WeightStore::bytes() const {
  return num_parameters() * static_cast<std::int64_t>(at::elementSize(dtype_));
}

}  // namespace tandem::model
