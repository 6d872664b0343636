// Backward passes of kernels, without LibTorch's heavy headers in every source.
#pragma once

#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace tandem::kernels {

/// Gets the gradient of each output (undefined where nothing depends on it) and returns that of
/// each input (undefined where `wants_gradient` was false, or it is zero).
using Backward = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// True while gradients are recorded.
bool recording();

/// True where a gradient for `x` has to be computed: gradients are recorded and `x` has a history
/// or is a leaf that asks for one.
bool wants_gradient(const at::Tensor& x);

/// Makes `outputs` results of `inputs` whose gradients `backward` computes.
///
/// Call it on fresh outputs when gradients are recorded and something wants one: an input, or a
/// Weight with a `grad`, into which `backward` then adds. Outputs require gradients afterwards even
/// where no input does. What `backward` captured is freed after it has run; it must not capture an
/// output, nor run twice.
void record(const std::vector<at::Tensor>& outputs,
            const std::vector<at::Tensor>& inputs,
            Backward backward);

}  // namespace tandem::kernels
