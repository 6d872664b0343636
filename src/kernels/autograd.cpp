#include "kernels/autograd.h"

#include <utility>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/variable.h>

#include "base/error.h"

namespace tandem::kernels {
namespace {

using torch::autograd::variable_list;

class KernelNode final : public torch::autograd::Node {
 public:
  KernelNode(Backward backward, torch::autograd::edge_list&& edges)
      : Node(std::move(edges)), backward_(std::move(backward)) {}

  std::string name() const override { return "TandemKernel"; }
  void release_variables() override { backward_ = nullptr; }

 private:
  variable_list apply(variable_list&& grads) override {
    TANDEM_CHECK(backward_ != nullptr, "a kernel's backward pass ran twice");
    const at::NoGradGuard no_grad;
    return backward_(grads);
  }

  Backward backward_;
};

}  // namespace

bool recording() {
  return at::GradMode::is_enabled();
}

bool wants_gradient(const at::Tensor& x) {
  return at::GradMode::is_enabled() && x.defined() && x.requires_grad();
}

void record(const std::vector<at::Tensor>& outputs,
            const std::vector<at::Tensor>& inputs,
            Backward backward) {
  torch::autograd::edge_list edges;
  for (const auto& input : inputs) {
    edges.push_back(wants_gradient(input) ? torch::autograd::impl::gradient_edge(input)
                                          : torch::autograd::Edge());
  }
  const std::shared_ptr<torch::autograd::Node> node(
      new KernelNode(std::move(backward), std::move(edges)), torch::autograd::deleteNode);
  for (const auto& output : outputs) {
    torch::autograd::set_history(output, node);
  }
}

}  // namespace tandem::kernels
