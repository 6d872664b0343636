// Activation checkpointing: a layer keeps its input alone and is computed again in backward.
#pragma once

#include <functional>

#include <ATen/core/Tensor.h>

namespace tandem::model {

using LayerFunction = std::function<at::Tensor(const at::Tensor& x)>;

/// `layer(x)`, whose activations are dropped and recomputed in backward. Both passes give the same
/// bits, so gradients are those without it. Source: Chen et al., "Training Deep Nets with Sublinear
/// Memory Cost", arXiv:1604.06174.
at::Tensor checkpoint_layer(const at::Tensor& x, const LayerFunction& layer);

}  // namespace tandem::model
