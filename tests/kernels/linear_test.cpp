#include "kernels/linear.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/grad_mode.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "kernels/product.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::close;
using test::same_bits;

// Inputs that a sum over lanes does not divide, slices that it does not, outputs that no tile does.
struct Shape {
  std::int64_t rows;
  std::int64_t inputs;
  std::int64_t outputs;
  std::int64_t slices;
};
// One has rows that lie 4,096 bytes apart.
const std::vector<Shape> kShapes = {{1, 24, 5, 1},
                                    {2, 72, 7, 1},
                                    {3, 172, 64, 4},
                                    {5, 16, 1, 1},
                                    {13, 1, 9, 1},
                                    {70, 192, 50, 8},
                                    {200, 64, 97, 1},
                                    {9, 1024, 33, 1},
                                    {97, 288, 1100, 3}};

// Runs `f` under each arithmetic of this machine.
template <class F>
void under_each_arithmetic(F f) {
  for (const std::string name : {"widened", "dot_bf16"}) {
    if (name == "dot_bf16" && !supports_dot_bf16()) {
      continue;
    }
    CAPTURE(name);
    set_arithmetic("auto", name);
    f();
  }
  set_isa("auto");
}

at::Tensor random(at::IntArrayRef sizes, at::ScalarType type = at::kFloat) {
  return at::randn(sizes).to(type);
}

// The chain of linear.h, spelt out for one output.
float chain(const float* x, const float* w, std::int64_t inputs, std::int64_t slices) {
  float total = 0;
  const std::int64_t width = inputs / slices;
  for (std::int64_t s = 0; s < slices; ++s) {
    float lanes[4] = {};
    for (std::int64_t k = 0; k < width; ++k) {
      lanes[k % 4] = std::fma(x[s * width + k], w[s * width + k], lanes[k % 4]);
    }
    const float sum = (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
    total = s == 0 ? sum : total + sum;
  }
  return total;
}

TEST_CASE("each output is the chain of the contract, bit for bit") {
  at::manual_seed(1);
  for (const auto& s : kShapes) {
    const auto x = random({s.rows, s.inputs});
    const auto w = random({s.outputs, s.inputs});
    auto want = at::empty({s.rows, s.outputs});
    for (std::int64_t r = 0; r < s.rows; ++r) {
      for (std::int64_t n = 0; n < s.outputs; ++n) {
        want.mutable_data_ptr<float>()[r * s.outputs + n] =
            chain(x.const_data_ptr<float>() + r * s.inputs,
                  w.const_data_ptr<float>() + n * s.inputs,
                  s.inputs,
                  s.slices);
      }
    }
    CAPTURE(s.inputs);
    CHECK(same_bits(linear(x, {w, {}}, {}, s.slices), want));
  }
}

TEST_CASE("linear agrees with float64, with a bias and in bfloat16") {
  under_each_arithmetic([] {
    at::manual_seed(2);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const auto& s : kShapes) {
        const auto x = random({s.rows, s.inputs}, type);
        const auto w = random({s.outputs, s.inputs}, type);
        const auto b = random({s.outputs}, type);
        const auto want = at::addmm(b.to(at::kDouble), x.to(at::kDouble), w.to(at::kDouble).t());
        const auto got = linear(x, {w, {}}, {b, {}}, s.slices);
        CHECK((got.scalar_type() == type));
        const double tolerance = type == at::kFloat ? 1e-5 : 8e-3;
        CHECK(close(got.to(at::kDouble), want, tolerance, 10 * tolerance));
      }
    }
  });
}

TEST_CASE("widened bfloat16 is the float32 result, rounded") {
  at::manual_seed(3);
  set_arithmetic("auto", "widened");
  for (const auto& s : kShapes) {
    const auto x = random({s.rows, s.inputs}, at::kBFloat16);
    const auto w = random({s.outputs, s.inputs}, at::kBFloat16);
    const auto wide = linear(x.to(at::kFloat), {w.to(at::kFloat), {}}, {}, s.slices);
    CHECK(same_bits(linear(x, {w, {}}, {}, s.slices), wide.to(at::kBFloat16)));
    const auto into = at::empty_like(wide);
    linear_into(x, w, {}, s.slices, into);
    CHECK(same_bits(into, wide));
  }
  set_isa("auto");
}

TEST_CASE("a row has the same bits among any rows and in any place") {
  under_each_arithmetic([] {
    at::manual_seed(4);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto x = random({70, 172}, type);
      const Weight w{random({77, 172}, type), {}};
      const auto all = linear(x, w, {}, 4);
      for (std::int64_t rows = 1; rows <= 70; ++rows) {
        const auto first = 70 - rows;
        CHECK(same_bits(linear(x.slice(0, first, 70), w, {}, 4), all.slice(0, first, 70)));
      }
      const auto order = at::randperm(70);
      CHECK(same_bits(linear(x.index_select(0, order), w, {}, 4), all.index_select(0, order)));
      // Rows of a wider matrix, read and written in place.
      const auto wide = at::cat({x, x}, 1);
      CHECK(same_bits(linear(wide.slice(1, 172, 344), w, {}, 4), all));
    }
  });
}

TEST_CASE("threads and instruction sets change no bit, forward or backward") {
  at::manual_seed(5);
  const auto x = random({150, 200});
  const auto w = random({301, 200});
  const auto dy = random({150, 301});
  std::vector<std::vector<at::Tensor>> results;
  for (const Isa which : supported_isas()) {
    set_arithmetic(name_of(which), "widened");
    for (const int threads : {1, 2, 4}) {
      set_compute_threads(threads);
      const auto dx = at::ones_like(x);
      const auto dw = at::ones_like(w);
      add_input_gradient(dy, w, dx);
      add_weight_gradient(dy, x, dw);
      const auto narrow = linear(x.to(at::kBFloat16), {w.to(at::kBFloat16), {}}, {}, 2);
      results.push_back({linear(x, {w, {}}, {}, 2), narrow, dx, dw});
    }
  }
  set_isa("auto");
  set_compute_threads(1);
  for (const auto& result : results) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(result[i], results[0][i]));
    }
  }
}

TEST_CASE(
    "1 to 512 rows and 1, 2, 4 threads give the same bits, in each arithmetic and precision") {
  under_each_arithmetic([] {
    at::manual_seed(10);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      const auto x = random({512, 172}, type);
      const Weight w{random({83, 172}, type), {}};
      set_compute_threads(1);
      const auto all = linear(x, w, {}, 4);
      for (const int threads : {1, 2, 4}) {
        set_compute_threads(threads);
        for (const std::int64_t rows : {1, 2, 3, 5, 7, 12, 31, 64, 95, 128, 189, 257, 511, 512}) {
          CAPTURE(rows);
          CAPTURE(threads);
          CHECK(same_bits(linear(x.slice(0, 512 - rows), w, {}, 4), all.slice(0, 512 - rows)));
        }
      }
    }
    set_compute_threads(1);
  });
}

TEST_CASE("sums of pairs have the same bits for 1 to 512 rows and 1, 2, 4 threads") {
  if (!supports_dot_bf16()) {
    MESSAGE("skipped: this machine has no AVX512_BF16");
    return;
  }
  set_arithmetic("avx512", "dot_bf16");
  at::manual_seed(9);
  // Slices of 36 inputs: not a whole number of quads.
  const auto x = random({512, 144}, at::kBFloat16);
  const Weight w{random({83, 144}, at::kBFloat16), {}};
  const auto all = linear(x, w, {}, 4);
  for (const int threads : {1, 2, 4}) {
    set_compute_threads(threads);
    for (const std::int64_t rows : {1, 2, 3, 5, 6, 7, 12, 13, 31, 94, 95, 189, 511, 512}) {
      CAPTURE(rows);
      CHECK(same_bits(linear(x.slice(0, 512 - rows), w, {}, 4), all.slice(0, 512 - rows)));
    }
  }
  // Sums over 83 outputs and 511 rows: pairs whose second is missing.
  std::vector<at::Tensor> sums;
  const auto dy = random({511, 83}, at::kBFloat16);
  const auto right = x.slice(0, 0, 511);
  for (const int threads : {1, 2, 4}) {
    set_compute_threads(threads);
    const auto dx = at::ones({511, 144});
    const auto dw = at::ones({83, 144});
    add_input_gradient(dy, w.value, dx);
    add_weight_gradient(dy, right, dw);
    sums.push_back(at::cat({dx, dw}));
    const auto few = at::ones({7, 144});
    add_input_gradient(dy.slice(0, 504, 511), w.value, few);
    CHECK(same_bits(few, dx.slice(0, 504, 511)));
  }
  CHECK(same_bits(sums[1], sums[0]));
  CHECK(same_bits(sums[2], sums[0]));
  set_compute_threads(1);
  // Of numbers whose sums are exact there is one result whatever the order.
  const auto small = at::randint(-8, 9, {70, 100}).to(at::kBFloat16);
  const auto exact = at::randint(-8, 9, {45, 100}).to(at::kBFloat16);
  const auto into = at::empty({70, 45});
  linear_into(small, exact, {}, 1, into);
  CHECK(same_bits(into, small.to(at::kFloat).matmul(exact.to(at::kFloat).t())));
  set_isa("auto");
}

// Gradients of sum(y * dy) by LibTorch in float64.
struct Gradients {
  at::Tensor x, weight, bias;
};

Gradients reference(const at::Tensor& x, const at::Tensor& w, const at::Tensor& dy) {
  const auto d = dy.to(at::kDouble);
  return {d.matmul(w.to(at::kDouble)), d.t().matmul(x.to(at::kDouble)), d.sum(0)};
}

TEST_CASE("gradients agree with float64 and add up in place") {
  under_each_arithmetic([] {
    at::manual_seed(6);
    for (const auto type : {at::kFloat, at::kBFloat16}) {
      for (const auto& s : kShapes) {
        const auto x = random({s.rows, s.inputs}, type).requires_grad_();
        const Weight w{random({s.outputs, s.inputs}, type), at::ones({s.outputs, s.inputs})};
        const Weight b{random({s.outputs}, type), at::ones({s.outputs})};
        const auto dy = random({s.rows, s.outputs}, type);
        linear(x, w, b, s.slices).backward(dy);
        const auto want = reference(x.detach(), w.value, dy);
        const double tolerance = type == at::kFloat ? 1e-5 : 8e-3;
        CHECK(close(x.grad().to(at::kDouble), want.x, tolerance, 10 * tolerance));
        CHECK(close(w.grad.to(at::kDouble), want.weight + 1, 1e-5, 1e-4));
        CHECK(close(b.grad.to(at::kDouble), want.bias + 1, 1e-5, 1e-4));
      }
    }
  });
}

TEST_CASE("gradients agree with finite differences") {
  at::manual_seed(7);
  const auto x = random({3, 24}).requires_grad_();
  const Weight w{random({5, 24}), at::zeros({5, 24})};
  const auto dy = random({3, 5});
  linear(x, w).backward(dy);
  const auto loss = [&](const at::Tensor& inputs, const at::Tensor& weight) {
    return (linear(inputs, {weight, {}}).to(at::kDouble) * dy).sum().item<double>();
  };
  // The function is linear in each argument: a large step has no error but that of rounding.
  for (const auto& [row, col] : std::vector<std::pair<int, int>>{{0, 0}, {2, 17}, {1, 23}}) {
    auto step = at::zeros({5, 24});
    step[row][col] = 0.5;
    const double dw = loss(x.detach(), w.value + step) - loss(x.detach(), w.value - step);
    CHECK(w.grad[row][col].item<double>() == doctest::Approx(dw).epsilon(1e-4));
    const auto step_x = step.slice(0, 0, 3);
    const double dx = loss(x.detach() + step_x, w.value) - loss(x.detach() - step_x, w.value);
    CHECK(x.grad()[row][col].item<double>() == doctest::Approx(dx).epsilon(1e-4));
  }
}

TEST_CASE("gradients are recorded only where something wants one") {
  const auto x = random({2, 16});
  const auto value = random({3, 16});
  CHECK_FALSE(linear(x, {value, {}}).requires_grad());
  const Weight trained{value, at::zeros({3, 16})};
  const auto y = linear(x, trained);
  CHECK(y.requires_grad());  // the weight alone wants one
  y.sum().backward();
  CHECK(trained.grad.abs().sum().item<float>() > 0);
  const at::NoGradGuard off;
  CHECK_FALSE(linear(x, trained).requires_grad());
}

TEST_CASE("a gradient that a layer above passes down crosses frozen weights") {
  at::manual_seed(8);
  const Weight first{random({8, 16}), at::zeros({8, 16})};
  const Weight frozen{random({4, 8}), {}};
  const auto x = random({6, 16});
  const auto dy = random({6, 4});
  linear(linear(x, first), frozen).backward(dy);
  CHECK(close(first.grad, dy.matmul(frozen.value).t().matmul(x), 1e-4, 1e-4));
}

TEST_CASE("wrong shapes, types and slices are refused by name") {
  const auto x = random({2, 24});
  CHECK_THROWS_WITH(linear(x, {random({3, 25}), {}}),
                    "linear: weight has 2 dimensions and 25 inputs for x of 24");
  CHECK_THROWS_WITH(linear(x, {random({3, 24}), {}}, {}, 5),
                    "linear: 24 inputs cannot be cut into 5 slices");
  CHECK_THROWS_AS(linear(x, {random({3, 24}, at::kBFloat16), {}}), Error);
  CHECK_THROWS_AS(linear(x, {random({3, 24}), {}}, {random({4}), {}}), Error);
  CHECK_THROWS_AS(linear(x.t(), {random({3, 2}), {}}), Error);
  CHECK(linear(x.slice(0, 0, 0), {random({3, 24}), {}}).size(0) == 0);
}

}  // namespace
}  // namespace tandem::kernels
