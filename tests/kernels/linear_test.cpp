#include "kernels/linear.h"

#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

TEST_CASE("linear agrees with float64") {
  const auto x = at::randn({5, 72});
  const auto w = at::randn({7, 72});
  const auto y = linear(x, {w, {}});
  CHECK(test::close(
      y.to(at::kDouble), at::matmul(x.to(at::kDouble), w.to(at::kDouble).t()), 1e-5, 1e-5));
}

}  // namespace
}  // namespace tandem::kernels
