#include "model/layer_checkpoint.h"

#include <memory>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

namespace tandem::model {
namespace {

using torch::autograd::variable_list;

// A node of the graph that holds a function, which torch::autograd::Function cannot.
struct CheckpointBackward final : torch::autograd::Node {
  CheckpointBackward(at::Tensor input, LayerFunction function)
      : x(std::move(input)), layer(std::move(function)) {}

  variable_list apply(variable_list&& gradients) override {
    const at::AutoGradMode grad_mode(true);
    const auto input = x.detach().requires_grad_();
    torch::autograd::backward({layer(input)}, {gradients[0]});
    return {input.grad()};
  }

  void release_variables() override { x.reset(); }

  at::Tensor x;  // detached: the graph above it is not kept by this
  LayerFunction layer;
};

}  // namespace

at::Tensor checkpoint_layer(const at::Tensor& x, const LayerFunction& layer) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) {
    return layer(x);
  }
  auto y = [&] {
    const at::NoGradGuard no_grad;
    return layer(x);
  }();
  const auto node = std::shared_ptr<CheckpointBackward>(new CheckpointBackward(x.detach(), layer),
                                                        torch::autograd::deleteNode);
  node->set_next_edges(torch::autograd::collect_next_edges(x));
  torch::autograd::set_history(y, node);
  return y;
}

}  // namespace tandem::model
