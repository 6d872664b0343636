#include "kernels/isa.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/table.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

TEST_CASE("names choose among what the machine has, and others are refused") {
  const auto supported = supported_isas();
  REQUIRE(supported.back() == Isa::kPortable);
  set_isa("portable");
  CHECK(isa() == Isa::kPortable);
  set_isa("auto");
  CHECK(isa() == supported.front());
  CHECK_THROWS_AS(set_isa("mmx"), UserError);
  CHECK(isa() == supported.front());
}

TEST_CASE("the arithmetic of bfloat16 is chosen by name, with the instruction set it needs") {
  set_arithmetic("portable", "auto");
  CHECK(arithmetic() == Arithmetic::kWidened);
  set_arithmetic("auto", "widened");
  CHECK(arithmetic() == Arithmetic::kWidened);
  CHECK_THROWS_AS(set_arithmetic("auto", "exact"), UserError);
  if (supports_dot_bf16()) {
    set_arithmetic("auto", "dot_bf16");
    CHECK(arithmetic() == Arithmetic::kDotBf16);
    CHECK_THROWS_WITH_AS(
        set_arithmetic("avx2", "dot_bf16"),
        "arithmetic: dot_bf16 needs isa avx512, not avx2; use arithmetic widened or isa avx512",
        UserError);
    CHECK(isa() == Isa::kAvx512);  // a refusal changes nothing
  } else {
    CHECK_THROWS_AS(set_arithmetic("auto", "dot_bf16"), MachineError);
  }
  set_isa("auto");
}

std::vector<float> exps_of(const std::vector<float>& x, Isa which) {
  set_isa(name_of(which));
  std::vector<float> y(x.size());
  table().elementwise.exp_f32(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
  set_isa("auto");
  return y;
}

// Every 1001st float, all exponents and both signs.
std::vector<float> many_floats() {
  std::vector<float> x;
  for (std::uint64_t bits = 0; bits < (1ull << 32); bits += 1001) {
    const auto word = static_cast<std::uint32_t>(bits);
    float value = 0;
    std::memcpy(&value, &word, sizeof value);
    x.push_back(value);
  }
  return x;
}

TEST_CASE("exp is off by less than one unit in the last place") {
  const auto x = many_floats();
  const auto y = exps_of(x, supported_isas().front());
  double worst = 0;
  bool specials = true;  // NaN for NaN, infinity where e^x is beyond the floats
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp(static_cast<double>(x[i]));
    if (std::isnan(x[i])) {
      specials = specials && std::isnan(y[i]);
    } else if (exact > std::numeric_limits<float>::max()) {
      // The largest float itself may be one unit off.
      specials = specials && y[i] >= std::numeric_limits<float>::max();
    } else {
      const auto rounded = static_cast<float>(exact);
      const double unit =
          static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) -
          static_cast<double>(rounded);
      worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) / unit);
    }
  }
  MESSAGE("worst error " << worst << " units");
  CHECK(worst < 1.0);
  CHECK(specials);
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(exps_of({0.0f, -0.0f, -inf, inf, 1000.0f, -1000.0f}, Isa::kPortable) ==
        std::vector<float>{1, 1, 0, inf, inf, 0});
}

TEST_CASE("exp has the same bits on all instruction sets") {
  auto x = many_floats();
  x.resize(x.size() / 4 * 4 - 3);  // a ragged tail
  const auto expected = exps_of(x, Isa::kPortable);
  for (const Isa which : supported_isas()) {
    CAPTURE(name_of(which));
    const auto y = exps_of(x, which);
    CHECK(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)) == 0);
  }
}

// Exponents over the whole range, so that sums cancel, overflow and become denormal.
at::Tensor wild(at::IntArrayRef sizes) {
  return at::randn(sizes) * at::pow(2.0f, at::randint(-80, 80, sizes, at::kFloat));
}

TEST_CASE("multiply-adds are rounded once on all instruction sets, whatever the exponents") {
  at::manual_seed(1);
  for (int round = 0; round < 20; ++round) {
    const auto x = wild({33, 47});
    const auto w = wild({29, 47});
    std::vector<at::Tensor> results;
    for (const Isa which : supported_isas()) {
      set_isa(name_of(which));
      results.push_back(linear(x, {w, {}}));
    }
    set_isa("auto");
    for (const auto& result : results) {
      // By value: which NaN a sum of two gives is not defined.
      CHECK(at::allclose(result, results[0], 0, 0, /*equal_nan=*/true));
    }
    // A multiply-add alone is the C library's fma.
    const auto* a = x.const_data_ptr<float>();
    const auto* b = w.const_data_ptr<float>();
    for (const Isa which : supported_isas()) {
      set_isa(name_of(which));
      auto sum = at::full({1, 1}, a[round + 100]);
      add_input_gradient(x.slice(0, 0, 1).slice(1, 0, 1), w.slice(0, 0, 1).slice(1, 0, 1), sum);
      CHECK(sum.item<float>() == std::fma(a[0], b[0], a[round + 100]));
    }
    set_isa("auto");
  }
}

}  // namespace
}  // namespace tandem::kernels
