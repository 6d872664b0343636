// AdamW over all parameters in one pass, with the gradient's global norm and its clipping.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tandem::trainer {

struct AdamWConfig {
  double beta1 = 0.9;          // in [0, 1)
  double beta2 = 0.999;        // in [0, 1)
  double epsilon = 1e-8;       // above 0
  double weight_decay = 0.0;   // at least 0
  bool decay_all = true;       // false: only tensors of two or more dimensions decay
  double max_grad_norm = 1.0;  // at least 0; 0 does not clip
};

/// A tensor to train: memory that outlives the optimizer and stays where it is.
///
/// With a bf16 copy and no `weight`, the optimizer holds the master: the copy, widened, at first.
struct OptimizerParameter {
  std::string name;                      // unique
  std::span<float> weight{};             // fp32; the master where the model works in bf16
  std::int64_t dimensions = 0;           // of the tensor, for `decay_all`
  std::span<std::uint16_t> bf16_copy{};  // empty, or the working weights: written at each step
};

/// The state of one parameter, for checkpoints: read it, or write what was saved.
struct OptimizerMoments {
  std::string name;
  std::span<float> first;     // running mean of the gradient
  std::span<float> second;    // running mean of its square
  std::span<float> master{};  // the fp32 weight, where the optimizer holds it
};

struct OptimizerStep {
  double grad_norm = 0;   // L2 over all parameters, before clipping
  bool skipped = false;   // a gradient was not finite: nothing was changed
  std::string nonfinite;  // the first parameter with such a gradient; empty otherwise
};

/// Loshchilov and Hutter, "Decoupled Weight Decay Regularization", arXiv:1711.05101, algorithm 2:
///
///   scale = min(1, max_grad_norm / (norm + 1e-6)),   g = scale * gradient
///   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
///   w = w (1 - lr * decay) - lr / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// As in PyTorch, the rate and not a separate schedule multiplies the decay. The result does not
/// depend on the number of threads: the norm is a sum in double over pieces of a fixed size, added
/// in order. Not thread safe; the thread that trains owns it.
class AdamW {
 public:
  /// Throws UserError for settings out of range, Error for parameters that do not fit together.
  AdamW(const AdamWConfig& config, std::vector<OptimizerParameter> parameters);
  AdamW(const AdamW&) = delete;
  AdamW& operator=(const AdamW&) = delete;

  /// One update from `gradients`, one a parameter in their order, each as long as its weight.
  OptimizerStep step(std::span<const std::span<const float>> gradients, double learning_rate);

  /// The L2 norm that `step` would report. Not finite when a gradient is not.
  [[nodiscard]] double grad_norm(std::span<const std::span<const float>> gradients) const;

  /// Updates made so far, skipped ones left out.
  [[nodiscard]] std::int64_t num_steps() const { return num_steps_; }
  void set_num_steps(std::int64_t num_steps);

  /// In the order of the parameters; valid as long as the optimizer.
  [[nodiscard]] std::vector<OptimizerMoments> moments();

  /// Memory of the moments, 8 bytes a weight, and of the masters it holds, 4.
  [[nodiscard]] std::int64_t state_bytes() const;

 private:
  // What one task of the pool works on: a piece of one parameter.
  struct Piece {
    std::size_t parameter = 0;
    std::size_t first = 0;
    std::size_t size = 0;
  };

  void check_gradients(std::span<const std::span<const float>> gradients) const;
  [[nodiscard]] std::vector<double> squares(
      std::span<const std::span<const float>> gradients) const;

  AdamWConfig config_;
  std::vector<OptimizerParameter> parameters_;
  std::vector<Piece> pieces_;               // in the order of the parameters
  std::vector<std::vector<float>> first_;   // per parameter
  std::vector<std::vector<float>> second_;  // per parameter
  std::vector<std::vector<float>> master_;  // per parameter; empty where it is not held here
  std::int64_t num_steps_ = 0;
};

}  // namespace tandem::trainer
