// Attention against float64, and what it refuses.
#include "kernels/attention.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/attention_cases.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

using test::PathBuilder;

struct Heads {
  std::int64_t query = 0;
  std::int64_t key = 0;
  std::int64_t width = 0;
};

struct Problem {
  at::Tensor q, k, v, dout;
  KeyPaths paths;
  AttentionOptions options;
};

// Whole sequences whose tokens lie in shuffled slots, among slots that hold NaN.
Problem make_problem(const Heads& heads, const std::vector<int>& lengths, std::uint32_t seed) {
  at::manual_seed(seed);
  std::mt19937 random(seed);
  auto sequences = test::slots_in_order(lengths);
  const std::int64_t num_tokens = sequences.back().back() + 1;
  const std::int64_t num_slots = num_tokens + 9;
  std::vector<std::int32_t> place(num_slots);
  std::iota(place.begin(), place.end(), 0);
  std::shuffle(place.begin(), place.end(), random);
  Problem p;
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  p.q = at::randn({num_tokens, heads.query, heads.width});
  p.k = at::full({num_slots, heads.key, heads.width}, nan);
  p.v = at::full({num_slots, heads.key, heads.width}, nan);
  p.dout = at::randn(p.q.sizes());
  PathBuilder builder;
  for (auto& sequence : sequences) {
    for (std::int32_t& slot : sequence) {
      slot = place[slot];
      p.k[slot] = at::randn({heads.key, heads.width});
      p.v[slot] = at::randn({heads.key, heads.width});
    }
    builder.add(sequence, 0);
  }
  p.paths = builder.paths();
  p.options.scale = 1 / std::sqrt(static_cast<double>(heads.width));
  return p;
}

struct Result {
  at::Tensor out, dq, dk, dv;
};

template <class Attention>
Result differentiate(const Problem& p, at::ScalarType type, Attention attend) {
  const auto leaf = [&](const at::Tensor& x) { return x.to(type, false, true).requires_grad_(); };
  const auto q = leaf(p.q);
  const auto k = leaf(p.k);
  const auto v = leaf(p.v);
  const auto out = attend(q, k, v, p.paths, p.options);
  out.backward(p.dout.to(type));
  return {out.detach(), q.grad(), k.grad(), v.grad()};
}

void check_against_double(const Problem& p) {
  const Result want = differentiate(p, at::kDouble, test::plain_attention);
  const Result got = differentiate(p, at::kFloat, attention);
  CHECK((got.out - want.out).abs().max().item<double>() < 5e-6);
  CHECK(test::relative_l2(got.dq, want.dq) < 2e-5);
  CHECK(test::relative_l2(got.dk, want.dk) < 2e-5);
  CHECK(test::relative_l2(got.dv, want.dv) < 2e-5);
}

TEST_CASE("ragged sequences of any head width agree with float64, gradients too") {
  const std::vector<Heads> shapes = {
      {4, 2, 16}, {3, 1, 24}, {9, 3, 64}, {2, 2, 128}, {40, 1, 5}, {6, 2, 80}, {5, 5, 1}};
  std::uint32_t seed = 1;
  for (const Heads& heads : shapes) {
    CAPTURE(heads.query);
    CAPTURE(heads.width);
    Problem p = make_problem(heads, {1, 37, 16, 50, 2}, seed++);
    check_against_double(p);
    p.options.window = 19;
    check_against_double(p);
    p.options.softcap = 1.5;
    check_against_double(p);
  }
}

TEST_CASE("a soft cap is accurate for small and for large scores") {
  Problem p = make_problem({2, 1, 16}, {40}, 5);
  p.options.softcap = 30;
  p.options.scale = 1e-3;
  check_against_double(p);
  p.options.scale = 20;
  const Result want = differentiate(p, at::kDouble, test::plain_attention);
  const Result got = differentiate(p, at::kFloat, attention);
  CHECK((got.out - want.out).abs().max().item<double>() < 2e-4);  // scores reach 30
}

// Float64 gets the same rounded inputs, so that what is left is the rounding of the results and of
// `out`, which dout . out is computed from.
TEST_CASE("gradients of bfloat16 are bfloat16, and off by its rounding alone") {
  Problem p = make_problem({6, 2, 64}, {70, 3, 41, 16}, 12);
  for (at::Tensor* x : {&p.q, &p.k, &p.v, &p.dout}) {
    *x = x->to(at::kBFloat16).to(at::kFloat);
  }
  for (const double softcap : {0.0, 2.0}) {
    p.options.softcap = softcap;
    const Result want = differentiate(p, at::kDouble, test::plain_attention);
    const Result got = differentiate(p, at::kBFloat16, attention);
    CHECK((got.dq.scalar_type() == at::kBFloat16));
    CHECK((got.dk.scalar_type() == at::kBFloat16));
    CHECK((got.dv.scalar_type() == at::kBFloat16));
    CHECK(test::relative_l2(got.dq, want.dq) < 4e-3);
    CHECK(test::relative_l2(got.dk, want.dk) < 4e-3);
    CHECK(test::relative_l2(got.dv, want.dv) < 4e-3);
  }
}

TEST_CASE("gradients have the same bits on any number of threads") {
  const Problem p = make_problem({6, 2, 32}, {90, 3, 41, 64}, 9);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    set_compute_threads(1);
    const Result one = differentiate(p, type, attention);
    for (const int num_threads : {2, 4}) {
      set_compute_threads(num_threads);
      const Result many = differentiate(p, type, attention);
      CHECK(test::same_bits(many.dq, one.dq));
      CHECK(test::same_bits(many.dk, one.dk));
      CHECK(test::same_bits(many.dv, one.dv));
    }
  }
  set_compute_threads(1);
}

TEST_CASE("slots that no row sees get a gradient of zero") {
  const Problem p = make_problem({2, 2, 16}, {7}, 3);
  const Result got = differentiate(p, at::kFloat, attention);
  const auto unseen = p.k.isnan();
  CHECK(unseen.any().item<bool>());
  CHECK((got.dk.masked_select(unseen) == 0).all().item<bool>());
  CHECK((got.dv.masked_select(unseen) == 0).all().item<bool>());
}

TEST_CASE("keys and values may be strided slices of one tensor") {
  Problem p = make_problem({4, 2, 16}, {20, 5}, 4);
  const auto dense = attention(p.q, p.k, p.v, p.paths, p.options);
  const auto both = at::cat({p.k, p.v}, 1);  // [S, 2 G, D]
  p.k = both.narrow(1, 0, 2);
  p.v = both.narrow(1, 2, 2);
  CHECK(test::same_bits(attention(p.q, p.k, p.v, p.paths, p.options), dense));
}

TEST_CASE("wrong shapes, types, positions and slots are refused, and no rows are fine") {
  const Problem p = make_problem({4, 2, 16}, {5}, 6);
  const auto refuses = [&](const Problem& bad) {
    CHECK_THROWS_AS(attention(bad.q, bad.k, bad.v, bad.paths, bad.options), Error);
  };
  Problem bad = p;
  bad.q = p.q.narrow(1, 0, 3);  // not divisible by 2 key heads
  refuses(bad);
  bad = p;
  bad.v = p.v.to(at::kBFloat16);
  refuses(bad);
  bad = p;
  bad.paths.positions = p.paths.positions + 1;  // past the end of key_slots
  refuses(bad);
  bad = p;
  bad.paths.key_slots = p.paths.key_slots - 1000;
  refuses(bad);
  bad = p;
  bad.paths.path_start = p.paths.path_start.narrow(0, 0, 4);
  refuses(bad);
  Problem empty = p;
  empty.q = p.q.narrow(0, 0, 0);
  empty.paths = PathBuilder().paths();
  CHECK(attention(empty.q, empty.k, empty.v, empty.paths, empty.options).size(0) == 0);
}

}  // namespace
}  // namespace tandem::kernels
