#include "kernels/elementwise.h"

#include <cmath>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/heads.h"
#include "kernels/isa.h"
#include "kernels/rotary_angles.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::close;
using test::same_bits;

TEST_CASE("the gated activation agrees with float64, forward and backward") {
  at::manual_seed(2);
  for (const std::int64_t width : {1, 24, 172, 1536}) {
    const auto x = (4 * at::randn({6, 2 * width})).requires_grad_();
    const auto leaf = x.detach().requires_grad_();
    const auto dy = at::randn({6, width});
    const auto y = gated_silu(leaf);
    y.backward(dy);
    const auto x64 = x.detach().to(at::kDouble).requires_grad_();
    const auto halves = x64.chunk(2, -1);
    const auto want = at::silu(halves[0]) * halves[1];
    want.backward(dy.to(at::kDouble));
    CHECK(close(y.to(at::kDouble), want, 1e-5, 1e-6));
    CHECK(close(leaf.grad().to(at::kDouble), x64.grad(), 1e-5, 1e-5));
  }
}

TEST_CASE("large gates neither overflow nor give a NaN") {
  const auto x = at::tensor({-1e30f, -200.0f, 200.0f, 1e30f, 1.0f, 1.0f, 1.0f, 1.0f}).view({1, 8});
  CHECK(at::equal(gated_silu(x), at::tensor({0.0f, 0.0f, 200.0f, 1e30f}).view({1, 4})));
}

TEST_CASE("embedding picks rows, and its gradient adds up where an id comes twice") {
  at::manual_seed(3);
  const auto ids = at::tensor({3, 0, 3, 9, 3}, at::kInt);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Weight w{at::randn({10, 200}).to(type), at::ones({10, 200})};
    const auto y = embedding(ids, w);
    CHECK(same_bits(y.detach(), w.value.index_select(0, ids)));
    const auto dy = at::randn({5, 200}).to(type);
    y.backward(dy);
    const auto want = at::ones({10, 200}, at::kDouble).index_add(0, ids, dy.to(at::kDouble));
    CHECK(close(w.grad.to(at::kDouble), want, 1e-6, 1e-6));
  }
  const Weight frozen{at::randn({10, 8}), {}};
  CHECK_FALSE(embedding(ids, frozen).requires_grad());
  CHECK_THROWS_WITH(embedding(at::tensor({10}, at::kInt), frozen),
                    "embedding: id 10 is beyond the 10 rows of the weight");
}

TEST_CASE("a sum passes its gradient to both sides") {
  const auto x = at::randn({3, 50}).requires_grad_();
  const auto y = at::randn({3, 50}).requires_grad_();
  const auto dy = at::randn({3, 50});
  const auto sum = kernels::add(x, y);
  sum.backward(dy);
  CHECK(same_bits(sum.detach(), (x + y).detach()));
  CHECK(same_bits(x.grad(), dy));
  CHECK(same_bits(y.grad(), dy));
  const auto narrow = at::randn({3, 50}).to(at::kBFloat16);
  CHECK(same_bits(kernels::add(narrow, narrow), narrow + narrow));
  CHECK_THROWS_AS(kernels::add(x, narrow), Error);
}

TEST_CASE("threads, instruction sets and neighbours change no bit") {
  at::manual_seed(4);
  const auto table = angles(100, 36);
  const auto positions = at::randint(100, {200}, at::kInt);
  const auto heads = at::randn({200, 5, 72});
  const auto gates = at::randn({200, 2 * 172});
  const std::vector<std::function<at::Tensor(at::ScalarType, std::int64_t)>> cases = {
      [&](auto type, auto first) {
        return rotary(heads.slice(0, first).to(type).contiguous(),
                      positions.slice(0, first).contiguous(),
                      table);
      },
      [&](auto type, auto first) { return gated_silu(gates.slice(0, first).to(type)); },
      [&](auto type, auto first) {
        const auto x = gates.slice(0, first).to(type);
        return kernels::add(x, x);
      }};
  for (const auto& kernel : cases) {
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto all = kernel(type, 0);
      for (const Isa which : supported_isas()) {
        set_isa(name_of(which));
        for (const int threads : {1, 2, 4}) {
          set_compute_threads(threads);
          CHECK(same_bits(kernel(type, 0), all));
          CHECK(same_bits(kernel(type, 77), all.slice(0, 77)));
        }
      }
    }
  }
  set_isa("auto");
  set_compute_threads(1);
}

}  // namespace
}  // namespace tandem::kernels
