// The decoder: embedding, layers of attention and gated MLP, final norm. One for trainer and
// sampler.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "kernels/attention.h"
#include "kernels/heads.h"
#include "model/activation_tape.h"
#include "model/weight_store.h"

namespace tandem::model {

// Shape letters: R rows (tokens of any sequences), H hidden width, L layers, S slots, G kv heads,
// D head width.

/// The rows of one forward pass and where each row's keys are.
struct RowBatch {
  at::Tensor ids;           // [R] int32
  kernels::KeyPaths paths;  // with a cache: slots of the cache; without: rows of this batch
};

/// Keys and values of the engine's paged cache. Written and read by slot.
struct KvCache {
  std::vector<at::Tensor> k;  // per layer [S, G, D], working precision
  std::vector<at::Tensor> v;  // per layer [S, G, D]
};

struct TrainForwardOptions {
  bool checkpoint_layers = false;  // keep only each layer's input, recompute it in backward
  TapeReader sampled{};            // with a tape: products are taken from it, not computed
};

/// Runs the weights of a store on rows. The values of a row depend on its tokens, positions and the
/// weights alone; not on other rows, on the cache or on gradients being kept.
class Decoder {
 public:
  /// `weights` must outlive the decoder. `max_positions` bounds positions (tables are made for it).
  Decoder(WeightStore& weights, std::int64_t max_positions);

  /// Final hidden rows [R, H] of rows whose keys are in the batch itself: slot r is row r.
  /// Differentiable where gradients are on and the store has gradients.
  [[nodiscard]] at::Tensor forward(const RowBatch& batch, const TrainForwardOptions& options) const;

  /// The same, with keys and values written to `write_slots` [R] int64 of `cache` first, and read
  /// from there. No gradients. With a tape in `kept`, the rows' products are kept there.
  [[nodiscard]] at::Tensor forward_cached(const RowBatch& batch,
                                          const at::Tensor& write_slots,
                                          KvCache& cache,
                                          const TapeWriter& kept = {}) const;

  [[nodiscard]] WeightStore& weights() const { return weights_; }
  [[nodiscard]] const ModelConfig& config() const { return weights_.config(); }
  [[nodiscard]] std::int64_t max_positions() const { return rotary_.cos.size(0); }

 private:
  // What a pass reads and writes beside its rows. Null: nothing of the kind.
  struct Access {
    const kernels::KeyPaths& paths;
    const at::Tensor* write_slots = nullptr;
    KvCache* cache = nullptr;
    TapeWriter kept{};
    TapeReader sampled{};
  };
  // A product's weights, and which of a layer's it is.
  struct ProductOf {
    std::size_t layer;
    Product product;
    const kernels::Weight& weight;
    const kernels::Weight& bias;
    std::int64_t num_slices = 1;
  };
  [[nodiscard]] at::Tensor product(const at::Tensor& x,
                                   const ProductOf& of,
                                   const Access& access) const;
  [[nodiscard]] kernels::Heads heads_of(const at::Tensor& qkv,
                                        const LayerWeights& layer,
                                        const at::Tensor& positions) const;
  [[nodiscard]] at::Tensor layer_forward(at::Tensor x,
                                         std::size_t layer,
                                         const Access& access) const;
  [[nodiscard]] at::Tensor attention_block(const at::Tensor& x,
                                           std::size_t layer,
                                           const Access& access) const;

  WeightStore& weights_;  // not owned
  kernels::RotaryTable rotary_;
};

/// The rotary frequencies of one head, [D/2] in double. Source: reference formulas of each rope
/// type (Llama 3: Meta's release notes, as in transformers' modeling_rope_utils).
std::vector<double> rotary_frequencies(const RopeConfig& rope, std::int64_t head_dim);

/// How many slices the sum over `down_proj`'s input has: the largest divisor of it up to 8.
std::int64_t down_slices(std::int64_t intermediate_size);

}  // namespace tandem::model
