// The optimizer's step on a weight store: the one place where weights change while training.
#pragma once

#include "model/weight_store.h"
#include "trainer/optimizer.h"

namespace tandem::trainer {

/// What AdamW trains of a store: every storage once, in the store's order. Of a bfloat16 store it
/// holds float32 masters, and the store has their roundings after each step.
std::vector<OptimizerParameter> optimizer_parameters(model::WeightStore& weights);

/// One step from the store's gradients, in place; raises the weight version unless it was skipped.
/// Throws Error in the rollout phase, in which an engine samples from the store.
OptimizerStep update_weights(model::WeightStore& weights, AdamW& optimizer, double learning_rate);

}  // namespace tandem::trainer
