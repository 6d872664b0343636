#include "kernels/norm.h"

#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::close;
using test::same_bits;

constexpr double kEps = 1e-5;

// In the type of x: float64 gives the reference, also of its gradients.
at::Tensor reference(const at::Tensor& x, const at::Tensor& weight) {
  return weight * (x * at::rsqrt((x * x).mean(-1, true) + kEps));
}

const std::vector<std::vector<std::int64_t>> kShapes = {
    {1, 1}, {3, 24}, {7, 172}, {90, 576}, {40, 3, 64}, {5, 2, 72}};

TEST_CASE("the norm agrees with float64, per row and per head") {
  at::manual_seed(1);
  for (const auto& shape : kShapes) {
    const auto x = at::randn(shape);
    const auto w = at::randn({shape.back()});
    const auto want = reference(x.to(at::kDouble), w.to(at::kDouble));
    CHECK(close(rms_norm(x, {w, {}}, kEps).to(at::kDouble), want, 1e-5, 1e-6));
  }
}

TEST_CASE("in bfloat16 the normalised value is rounded before it is scaled") {
  at::manual_seed(2);
  const auto x = at::randn({50, 576}).to(at::kBFloat16);
  const auto w = at::randn({576}).to(at::kBFloat16);
  const auto y = rms_norm(x, {w, {}}, kEps);
  const auto ones = at::ones({576}, at::kBFloat16);
  CHECK(same_bits(y, w * rms_norm(x, {ones, {}}, kEps)));
  const auto want = reference(x.to(at::kDouble), w.to(at::kDouble));
  CHECK(close(y.to(at::kDouble), want, 1.5e-2, 1e-6));
}

TEST_CASE("a row has the same bits among any rows, on any threads and instruction set") {
  at::manual_seed(3);
  const auto x = at::randn({300, 172});
  const Weight w{at::randn({172}), {}};
  const auto all = rms_norm(x, w, kEps);
  for (const Isa which : supported_isas()) {
    set_isa(name_of(which));
    for (const int threads : {1, 2, 4}) {
      set_compute_threads(threads);
      CHECK(same_bits(rms_norm(x, w, kEps), all));
      CHECK(same_bits(rms_norm(x.slice(0, 17, 40), w, kEps), all.slice(0, 17, 40)));
    }
  }
  set_isa("auto");
  set_compute_threads(1);
}

TEST_CASE("gradients agree with float64 and add up in place") {
  at::manual_seed(4);
  for (const auto& shape : kShapes) {
    const auto x = at::randn(shape).requires_grad_();
    const Weight w{at::randn({shape.back()}), at::ones({shape.back()})};
    const auto dy = at::randn(shape);
    rms_norm(x, w, kEps).backward(dy);
    const auto x64 = x.detach().to(at::kDouble).requires_grad_();
    const auto w64 = w.value.to(at::kDouble).requires_grad_();
    reference(x64, w64).backward(dy.to(at::kDouble));
    CHECK(close(x.grad().to(at::kDouble), x64.grad(), 1e-4, 1e-5));
    CHECK(close(w.grad.to(at::kDouble), w64.grad() + 1, 1e-5, 1e-4));
  }
}

TEST_CASE("a residual goes on as itself and normed, and its gradients meet") {
  at::manual_seed(6);
  const auto value = at::randn({90, 576});
  const auto dpass = at::randn({90, 576});
  const auto dy = at::randn({90, 576});
  const Weight w{at::randn({576}), at::zeros({576})};
  const auto x = value.clone().requires_grad_();
  const auto both = rms_norm_residual(x, w, kEps);
  CHECK(both.x.data_ptr() == x.data_ptr());
  const auto alone = value.clone().requires_grad_();
  const Weight v{w.value, at::zeros({576})};
  const auto y = rms_norm(alone, v, kEps);
  CHECK(same_bits(both.normed.detach(), y.detach()));
  ((both.x * dpass).sum() + (both.normed * dy).sum()).backward();
  ((alone * dpass).sum() + (y * dy).sum()).backward();
  CHECK(same_bits(x.grad(), alone.grad()));
  CHECK(same_bits(w.grad, v.grad));
}

TEST_CASE("in bfloat16 the gradient of a residual is rounded once") {
  at::manual_seed(7);
  const auto x = at::randn({90, 576}).to(at::kBFloat16).requires_grad_();
  const Weight w{at::randn({576}).to(at::kBFloat16), at::zeros({576})};
  const auto dpass = at::randn({90, 576}).to(at::kBFloat16);
  const auto dy = at::randn({90, 576}).to(at::kBFloat16);
  const auto both = rms_norm_residual(x, w, kEps);
  ((both.x * dpass).sum() + (both.normed * dy).sum()).backward();
  const auto x64 = x.detach().to(at::kDouble).requires_grad_();
  const auto y64 = reference(x64, w.value.to(at::kDouble));
  ((x64 * dpass.to(at::kDouble)).sum() + (y64 * dy.to(at::kDouble)).sum()).backward();
  const auto exact = x64.grad();
  const auto error = (x.grad().to(at::kDouble) - exact).abs();
  CHECK((error > exact.abs() / 256 + 1e-5).sum().item<std::int64_t>() == 0);  // half a place
  CHECK(close(
      w.grad.to(at::kDouble),
      ((x64 * at::rsqrt((x64 * x64).mean(-1, true) + kEps)).detach() * dy.to(at::kDouble)).sum(0),
      1e-4,
      1e-3));
}

TEST_CASE("gradients have the same bits on any number of threads") {
  at::manual_seed(5);
  const auto value = at::randn({500, 576});
  const auto dy = at::randn({500, 576});
  std::vector<at::Tensor> dx;
  std::vector<at::Tensor> dw;
  for (const int threads : {1, 2, 4}) {
    set_compute_threads(threads);
    const auto x = value.clone().requires_grad_();
    const Weight w{at::ones({576}), at::zeros({576})};
    rms_norm(x, w, kEps).backward(dy);
    dx.push_back(x.grad());
    dw.push_back(w.grad);
  }
  set_compute_threads(1);
  CHECK(same_bits(dx[1], dx[0]));
  CHECK(same_bits(dx[2], dx[0]));
  CHECK(same_bits(dw[1], dw[0]));
  CHECK(same_bits(dw[2], dw[0]));
}

TEST_CASE("a weight of another width or type is refused") {
  const auto x = at::randn({2, 24});
  CHECK_THROWS_WITH(rms_norm(x, {at::ones({25}), {}}, kEps),
                    "rms_norm: weight has 25 elements for rows of 24");
  CHECK_THROWS_AS(rms_norm(x, {at::ones({24}, at::kBFloat16), {}}, kEps), Error);
}

}  // namespace
}  // namespace tandem::kernels
