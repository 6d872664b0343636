#include "model/tensor_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

void add_layer(std::vector<ExpectedTensor>& tensors, const ModelConfig& c, std::int64_t layer) {
  const std::string at = fmt::format("model.layers.{}.", layer);
  const std::string attention = at + "self_attn.";
  const std::int64_t q_size = c.num_heads * c.head_dim;
  const std::int64_t kv_size = c.num_kv_heads * c.head_dim;
  tensors.push_back({at + "input_layernorm.weight", {c.hidden_size}});
  for (const auto& [name, size] : {std::pair("q", q_size), {"k", kv_size}, {"v", kv_size}}) {
    tensors.push_back({attention + name + "_proj.weight", {size, c.hidden_size}});
    if (c.attention_bias) {
      tensors.push_back({attention + name + "_proj.bias", {size}});
    }
  }
  tensors.push_back({attention + "o_proj.weight", {c.hidden_size, q_size}});
  if (c.qk_norm) {
    tensors.push_back({attention + "q_norm.weight", {c.head_dim}});
    tensors.push_back({attention + "k_norm.weight", {c.head_dim}});
  }
  tensors.push_back({at + "post_attention_layernorm.weight", {c.hidden_size}});
  tensors.push_back({at + "mlp.gate_proj.weight", {c.intermediate_size, c.hidden_size}});
  tensors.push_back({at + "mlp.up_proj.weight", {c.intermediate_size, c.hidden_size}});
  tensors.push_back({at + "mlp.down_proj.weight", {c.hidden_size, c.intermediate_size}});
}

// "a, b, c and 17 more": a broken file can have thousands.
std::string first_few(const std::vector<std::string>& texts) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> shown(texts.begin(),
                                       texts.begin() + std::min(texts.size(), kShown));
  const std::string rest =
      texts.size() > kShown ? fmt::format(" and {} more", texts.size() - kShown) : "";
  return fmt::format("{}{}", fmt::join(shown, ", "), rest);
}

}  // namespace

std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> tensors;
  tensors.push_back({"model.embed_tokens.weight", {config.vocab_size, config.hidden_size}});
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    add_layer(tensors, config, layer);
  }
  tensors.push_back({"model.norm.weight", {config.hidden_size}});
  if (!config.tied_embeddings) {
    tensors.push_back({"lm_head.weight", {config.vocab_size, config.hidden_size}});
  }
  return tensors;
}

bool is_ignored_tensor(const std::string& name) {
  return name.ends_with("rotary_emb.inv_freq");
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void check_tensors(const ModelConfig& config,
                   const std::map<std::string, std::vector<std::int64_t>>& shapes,
                   const std::string& where) {
  std::vector<std::string> missing;
  std::vector<std::string> misshapen;
  std::vector<std::string> unknown;
  std::set<std::string> expected_names;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    expected_names.insert(expected.name);
    const auto found = shapes.find(expected.name);
    if (found == shapes.end()) {
      missing.push_back(fmt::format("{} {}", expected.name, shape_text(expected.shape)));
    } else if (found->second != expected.shape) {
      misshapen.push_back(fmt::format("{} is {} instead of {}",
                                      expected.name,
                                      shape_text(found->second),
                                      shape_text(expected.shape)));
    }
  }
  for (const auto& [name, shape] : shapes) {
    const bool tied_head = config.tied_embeddings && name == "lm_head.weight";
    if (expected_names.count(name) == 0 && !tied_head && !is_ignored_tensor(name)) {
      unknown.push_back(in_quotes(name) + " " + shape_text(shape));
    }
  }
  const std::string remedy = "the weights and the config do not belong together";
  if (!missing.empty()) {
    fail<UserError>("{}: lacks the tensors {}; {}", where, first_few(missing), remedy);
  }
  if (!misshapen.empty()) {
    fail<UserError>("{}: tensor {}; {}", where, first_few(misshapen), remedy);
  }
  if (!unknown.empty()) {
    fail<UserError>(
        "{}: a {} model has no tensors {}; {}", where, config.family, first_few(unknown), remedy);
  }
}

}  // namespace tandem::model
