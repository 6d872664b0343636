#include "trainer/weight_update.h"

#include "base/error.h"

namespace tandem::trainer {
namespace {

std::span<float> floats(const at::Tensor& tensor) {
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

}  // namespace

std::vector<OptimizerParameter> optimizer_parameters(model::WeightStore& weights) {
  if (weights.dtype() != at::kFloat) {
    fail<UserError>("model.dtype: training in bfloat16 is not in this version; use float32");
  }
  std::vector<OptimizerParameter> parameters;
  for (const auto& parameter : weights.parameters()) {
    const auto& value = parameter.weight->value;
    parameters.push_back(
        {.name = parameter.name, .weight = floats(value), .dimensions = value.dim()});
  }
  return parameters;
}

OptimizerStep update_weights(model::WeightStore& weights, AdamW& optimizer, double learning_rate) {
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
