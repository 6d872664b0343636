#include "trainer/weight_update.h"

namespace tandem::trainer {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

std::vector<OptimizerParameter> optimizer_parameters(model::WeightStore& weights) {
  std::vector<OptimizerParameter> parameters;
  for (const auto& parameter : weights.parameters()) {
    const auto& value = parameter.weight->value;
    auto& trained = parameters.emplace_back();
    trained.name = parameter.name;
    trained.dimensions = value.dim();
    if (weights.dtype() == at::kFloat) {
      trained.weight = floats(value);
    } else {
      trained.bf16_copy = {static_cast<std::uint16_t*>(value.data_ptr()),
                           static_cast<std::size_t>(value.numel())};
    }
  }
  return parameters;
}

OptimizerStep update_weights(model::WeightStore& weights, AdamW& optimizer, double learning_rate) {
  require_phase(weights.phase(), Phase::kTrain, "a weight update");
  std::vector<std::span<const float>> gradients;
  for (const auto& parameter : weights.parameters()) {
    gradients.push_back(floats(parameter.weight->grad));
  }
  const auto result = optimizer.step(gradients, learning_rate);
  if (!result.skipped) {
    weights.bump();
  }
  return result;
}

}  // namespace tandem::trainer
