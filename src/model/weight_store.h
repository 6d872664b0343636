// The one copy of the weights: storage that trainer and sampler share, under Hugging Face's names.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/phase.h"
#include "kernels/weight.h"
#include "model/config.h"

namespace tandem::model {

/// The weights of one decoder layer. Matrices that read the same rows are one storage, so that one
/// product serves them: `qkv` holds the rows of q_proj, k_proj and v_proj, `gate_up` those of
/// gate_proj and up_proj. Undefined where the family has no such weight.
struct LayerWeights {
  kernels::Weight input_norm;  // [H]
  kernels::Weight qkv;         // [(N + 2 G) D, H]
  kernels::Weight qkv_bias;    // [(N + 2 G) D]
  kernels::Weight q_norm;      // [D]
  kernels::Weight k_norm;      // [D]
  kernels::Weight o;           // [H, N D]
  kernels::Weight post_norm;   // [H]
  kernels::Weight gate_up;     // [2 I, H]
  kernels::Weight down;        // [H, I]
};

/// All weights of a model, in their working precision.
///
/// Not thread safe; the thread that runs the steps owns it. Every writer ends with `bump`. While an
/// engine samples from it, it is in the rollout phase, in which `load` and updates are refused.
class WeightStore {
 public:
  /// Storage for `config` in `dtype` (float32 or bfloat16), filled with zeros.
  WeightStore(const ModelConfig& config, at::ScalarType dtype);
  WeightStore(const WeightStore&) = delete;
  WeightStore& operator=(const WeightStore&) = delete;

  using Reader = std::function<at::Tensor(const std::string& hf_name)>;

  /// Fills every tensor from `read`, converted to the working precision, and raises the version.
  /// Throws Error in the rollout phase.
  void load(const Reader& read);

  /// Fills the matrices with normal numbers of deviation 0.02 (residual outputs divided by
  /// sqrt(2 L), as GPT-2 does), norms with ones, biases with zeros. The same seed, the same bits.
  void init_random(std::uint64_t seed);

  [[nodiscard]] const ModelConfig& config() const { return config_; }
  [[nodiscard]] at::ScalarType dtype() const { return dtype_; }
  [[nodiscard]] std::string dtype_name() const;  // float32 or bfloat16
  [[nodiscard]] const kernels::Weight& embedding() const { return embedding_; }
  [[nodiscard]] const kernels::Weight& final_norm() const { return final_norm_; }
  /// The output matrix; the embedding itself when the model is tied.
  [[nodiscard]] const kernels::Weight& head() const {
    return config_.tied_embeddings ? embedding_ : head_;
  }
  [[nodiscard]] const std::vector<LayerWeights>& layers() const { return layers_; }

  /// Hugging Face's names and views of the storage, in file order. Tied: no lm_head.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> named_tensors() const;

  /// The gradient views under the same names. Empty while there are no gradients.
  [[nodiscard]] std::vector<std::pair<std::string, at::Tensor>> named_gradients() const;

  /// One entry a storage, in a fixed order: what the optimizer updates.
  struct Parameter {
    std::string name;
    kernels::Weight* weight;
  };
  [[nodiscard]] std::vector<Parameter> parameters();

  /// Makes (zeroed) or zeroes the float32 gradients; `drop_gradients` gives their memory back and
  /// freezes the weights for the kernels.
  void zero_gradients();
  void drop_gradients();

  [[nodiscard]] WeightVersion version() const { return version_; }
  void bump() { ++version_; }

  /// The train phase until an engine says otherwise.
  [[nodiscard]] Phase phase() const { return phase_; }
  void set_phase(Phase phase) { phase_ = phase; }

  [[nodiscard]] std::int64_t num_parameters() const;
  [[nodiscard]] std::int64_t bytes() const;

 private:
  // A Hugging Face tensor as rows [begin, begin + rows) of a storage.
  struct Slice {
    std::string name;
    kernels::Weight* weight;
    std::int64_t begin;
    std::int64_t rows;
  };
  [[nodiscard]] std::vector<Slice> slices();
  void allocate_layer(LayerWeights& layer) const;

  ModelConfig config_;
  at::ScalarType dtype_;
  kernels::Weight embedding_;   // [V, H]
  kernels::Weight final_norm_;  // [H]
  kernels::Weight head_;        // [V, H]; undefined when tied
  std::vector<LayerWeights> layers_;
  WeightVersion version_ = 0;
  Phase phase_ = Phase::kTrain;
};

}  // namespace tandem::model
