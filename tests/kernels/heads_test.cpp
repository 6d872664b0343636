#include "kernels/heads.h"

#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "kernels/rotary_angles.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::close;
using test::same_bits;

// Pairs (j, j + D/2) turned by the row's angle, in float64.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& table) {
  const auto c = table.cos.to(at::kDouble).index_select(0, positions).unsqueeze(1);
  const auto s = table.sin.to(at::kDouble).index_select(0, positions).unsqueeze(1);
  const auto halves = x.chunk(2, -1);
  return at::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1);
}

TEST_CASE("rotary agrees with float64, forward and backward, for ragged widths too") {
  at::manual_seed(1);
  for (const std::int64_t width : {8, 24, 64, 72, 128}) {
    const auto table = angles(50, width / 2);
    const auto positions = at::randint(50, {9}, at::kInt);
    const auto x = at::randn({9, 3, width}).requires_grad_();
    const auto dy = at::randn({9, 3, width});
    const auto y = rotary(x, positions, table);
    y.backward(dy);
    const auto x64 = x.detach().to(at::kDouble).requires_grad_();
    const auto want = rotated(x64, positions, table);
    want.backward(dy.to(at::kDouble));
    CHECK(close(y.to(at::kDouble), want, 1e-5, 1e-6));
    CHECK(close(x.grad().to(at::kDouble), x64.grad(), 1e-5, 1e-6));
  }
}

TEST_CASE("position 0 turns nothing, and a position past the table is refused") {
  const auto table = angles(4, 8);
  const auto x = at::randn({1, 2, 16});
  CHECK(same_bits(rotary(x, at::zeros({1}, at::kInt), table), x));
  CHECK_THROWS_WITH(rotary(x, at::full({1}, 4, at::kInt), table),
                    "rotary: position 4 is beyond the table of 4");
}

constexpr HeadShape kShape = {.num_heads = 3, .num_kv_heads = 2, .head_dim = 24};
constexpr std::int64_t kWidth = (3 + 2 * 2) * 24;

// Rows, positions and gradients of q, k and v.
struct Case {
  explicit Case(at::ScalarType type, std::int64_t rows = 90)
      : qkv(at::randn({rows, kWidth}).to(type)), positions(at::randint(50, {rows}, at::kInt)) {
    for (const std::int64_t heads : {3, 2, 2}) {
      grads.push_back(at::randn({rows, heads, std::int64_t{24}}).to(type));
    }
  }

  at::Tensor qkv;
  at::Tensor positions;
  std::vector<at::Tensor> grads;
  RotaryTable table = angles(50, 12);
};

void pull_back(const Heads& heads, const std::vector<at::Tensor>& grads) {
  at::Tensor loss = (heads.q * grads[0]).sum() + (heads.k * grads[1]).sum();
  (loss + (heads.v * grads[2]).sum()).backward();
}

TEST_CASE("cutting and rotating in one pass has the bits of doing it one by one, both ways") {
  at::manual_seed(3);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const Case c(type);
    const auto one = c.qkv.clone().requires_grad_();
    const Heads fused = split_rotated_heads(one, kShape, c.positions, c.table);
    const auto two = c.qkv.clone().requires_grad_();
    Heads apart = split_heads(two, kShape);
    const auto parts = c.qkv.split_with_sizes({72, 48, 48}, 1);
    CHECK(same_bits(apart.q.flatten(1).contiguous(), parts[0].contiguous()));
    CHECK(same_bits(apart.k.flatten(1).contiguous(), parts[1].contiguous()));
    CHECK(same_bits(apart.v.flatten(1).contiguous(), parts[2].contiguous()));
    apart.q = rotary(apart.q, c.positions, c.table);
    apart.k = rotary(apart.k, c.positions, c.table);
    CHECK(same_bits(fused.q.detach(), apart.q.detach()));
    CHECK(same_bits(fused.k.detach(), apart.k.detach()));
    CHECK(same_bits(fused.v.detach(), apart.v.detach()));
    pull_back(fused, c.grads);
    pull_back(apart, c.grads);
    CHECK(same_bits(one.grad(), two.grad()));
    CHECK(close(one.grad().narrow(1, 120, 48), c.grads[2].flatten(1)));
  }
}

TEST_CASE("heads that nothing depends on get no gradient") {
  at::manual_seed(4);
  const Case c(at::kFloat);
  const auto qkv = c.qkv.clone().requires_grad_();
  (split_heads(qkv, kShape).k * c.grads[1]).sum().backward();
  CHECK(same_bits(qkv.grad().narrow(1, 72, 48).contiguous(), c.grads[1].flatten(1)));
  CHECK(qkv.grad().narrow(1, 0, 72).abs().max().item<float>() == 0);
  CHECK(qkv.grad().narrow(1, 120, 48).abs().max().item<float>() == 0);
}

TEST_CASE("heads have the same bits on any threads and instruction set") {
  at::manual_seed(5);
  const Case c(at::kBFloat16, 1200);
  std::vector<Heads> all;
  for (const int threads : {1, 2, 4}) {
    for (const char* isa : {"auto", "avx2", "portable"}) {
      set_compute_threads(threads);
      set_isa(isa);
      all.push_back(split_rotated_heads(c.qkv, kShape, c.positions, c.table));
    }
  }
  set_isa("auto");
  set_compute_threads(1);
  for (const Heads& heads : all) {
    CHECK(same_bits(heads.q, all[0].q));
    CHECK(same_bits(heads.k, all[0].k));
  }
}

TEST_CASE("rows of another width are refused") {
  CHECK_THROWS_WITH(split_heads(at::zeros({2, 167}), kShape),
                    "split_heads: rows of 167 for 3 + 2 x 2 heads of 24");
}

TEST_CASE("rows go to their slots of a cache, and a slot beyond it is refused") {
  at::manual_seed(6);
  for (const auto type : {at::kFloat, at::kBFloat16}) {
    const auto rows = at::randn({3, 2, 24}).to(type);
    const auto cache = at::randn({7, 2, 24}).to(type);
    const auto want = cache.clone();
    const auto slots = at::tensor({5, 0, 6}, at::kLong);
    want.index_copy_(0, slots, rows);
    store_rows(rows, slots, cache);
    CHECK(same_bits(cache, want));
  }
  const auto cache = at::zeros({7, 2, 24});
  const auto row = at::ones({1, 2, 24});
  CHECK_THROWS_WITH(store_rows(row, at::tensor({7}, at::kLong), cache), "store_rows: slot 7 of 7");
  CHECK_THROWS_WITH(store_rows(row, at::tensor({-1}, at::kLong), cache),
                    "store_rows: slot -1 of 7");
  CHECK_THROWS_WITH(store_rows(row, at::tensor({1, 2}, at::kLong), cache),
                    "store_rows: 2 slots and 48 elements for rows of 48");
}

}  // namespace
}  // namespace tandem::kernels
