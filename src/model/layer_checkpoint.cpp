#include "model/layer_checkpoint.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

namespace tandem::model {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::tensor_list;

struct CheckpointFunction : Function<CheckpointFunction> {
  static at::Tensor forward(AutogradContext* context,
                            const at::Tensor& x,
                            const std::shared_ptr<LayerFunction>& layer) {
    context->save_for_backward({x});
    context->saved_data["layer"] = c10::make_intrusive<Holder>(layer);
    const at::NoGradGuard no_grad;
    return (*layer)(x);
  }

  static tensor_list backward(AutogradContext* context, const tensor_list& gradients) {
    const auto x = context->get_saved_variables()[0].detach().requires_grad_();
    const auto holder = context->saved_data["layer"].toCapsule();
    const auto& layer = *static_cast<Holder*>(holder.get())->layer;
    const at::AutoGradMode grad_mode(true);
    const auto y = layer(x);
    torch::autograd::backward({y}, {gradients[0]});
    return {x.grad(), {}};
  }

 private:
  // An IValue holds intrusive pointers only.
  struct Holder : torch::CustomClassHolder {
    explicit Holder(std::shared_ptr<LayerFunction> function) : layer(std::move(function)) {}
    std::shared_ptr<LayerFunction> layer;
  };
};

}  // namespace

at::Tensor checkpoint_layer(const at::Tensor& x, const LayerFunction& layer) {
  if (!at::GradMode::is_enabled() || !x.requires_grad()) {
    return layer(x);
  }
  return CheckpointFunction::apply(x, std::make_shared<LayerFunction>(layer));
}

}  // namespace tandem::model
