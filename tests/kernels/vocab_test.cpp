// Reductions over the vocabulary, logits, log-probabilities and entropies.
#include "kernels/vocab.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"
#include "support/doctest_torch.h"

namespace tandem::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

double relative_l2(const at::Tensor& got, const at::Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.to(at::kDouble).norm()).item<double>();
}

const float* data(const at::Tensor& x) {
  return x.const_data_ptr<float>();
}

TEST_CASE("the reduction agrees with float64 for every length, and shows what is not finite") {
  at::manual_seed(1);
  for (const std::int64_t n : {1, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    CAPTURE(n);
    const auto logits = at::randn({n}) * 8;
    const LogSumExp total = reduce_logits(data(logits), n, 0.7F);
    const auto want = (logits.to(at::kDouble) * 0.7F).logsumexp(0).item<double>();
    CHECK(std::abs(total.max + std::log(double{total.sum}) - want) < 2e-6 * std::abs(want) + 1e-6);
  }
  auto logits = at::full({2000}, -kInfinity);
  CHECK(reduce_logits(data(logits), 2000, 1) == LogSumExp{-kInfinity, 0});
  logits[1500] = 3.0F;
  CHECK(reduce_logits(data(logits), 2000, 1) == LogSumExp{3, 1});
  logits[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(reduce_logits(data(logits), 2000, 1).sum));
  CHECK_THROWS_AS(reduce_logits(data(logits), 0, 1), Error);
}

// exp(x - max), by the exponential that the reductions have.
float exp_of(float x, float max) {
  exp_shifted(&x, 1, 1, max, &x);
  return x;
}

// One chunk as reduce_logits promises it: 16 lanes, then halves added to halves.
LogSumExp plain_chunk(const float* logits, std::int64_t n, float scale) {
  LogSumExp chunk{-kInfinity, 0};
  for (std::int64_t i = 0; i < n; ++i) {
    chunk.max = std::max(chunk.max, logits[i] * scale);
  }
  float lanes[16] = {};
  for (std::int64_t i = 0; i < n; ++i) {
    lanes[i % 16] += exp_of(logits[i] * scale, chunk.max);
  }
  for (const int half : {8, 4, 2, 1}) {
    for (int i = 0; i < half; ++i) {
      lanes[i] += lanes[i + half];
    }
  }
  chunk.sum = lanes[0];
  return chunk;
}

LogSumExp plain_reduction(const float* logits, std::int64_t n, float scale) {
  LogSumExp all = plain_chunk(logits, std::min<std::int64_t>(n, 1024), scale);
  for (std::int64_t first = 1024; first < n; first += 1024) {
    const auto next = plain_chunk(logits + first, std::min<std::int64_t>(n - first, 1024), scale);
    const float max = std::max(all.max, next.max);
    all.sum = all.sum * exp_of(all.max, max) + next.sum * exp_of(next.max, max);
    all.max = max;
  }
  return all;
}

TEST_CASE("the reduction is chunks of 1,024 merged from left to right, bit for bit") {
  at::manual_seed(12);
  for (const auto isa : supported_isas()) {
    set_isa(name_of(isa));
    CAPTURE(name_of(isa));
    for (const std::int64_t n : {1, 16, 1000, 1024, 1025, 2048, 3000, 9000, 49152}) {
      CAPTURE(n);
      const auto logits = at::randn({n}) * 6;
      for (const float scale : {1.0F, 0.7F}) {
        CHECK(reduce_logits(data(logits), n, scale) == plain_reduction(data(logits), n, scale));
      }
    }
  }
  set_isa("auto");
}

TEST_CASE("log-probabilities and entropies of given logits are the reference's") {
  const auto golden = nlohmann::json::parse(read_file("tests/golden/rl/verl_core_algos.json"))
                          .at("misc")
                          .at("logprobs_from_logits");
  const auto given = golden.at("logits").at(0).get<std::vector<std::vector<float>>>();
  const auto num_rows = static_cast<std::int64_t>(given.size());
  const auto x = at::empty({num_rows, 4});
  for (std::int64_t row = 0; row < num_rows; ++row) {
    x[row].copy_(at::tensor(given[static_cast<std::size_t>(row)]));
  }
  // Times the identity: the logits are the hidden rows.
  const auto labels = golden.at("labels").at(0).get<std::vector<std::int32_t>>();
  const auto got = token_logprobs(x,
                                  {at::eye(4), {}},
                                  {.row = at::arange(num_rows, at::kLong),
                                   .target = at::tensor(labels),
                                   .support = {},
                                   .num_ids = 4});
  const auto want = [&](const char* key) {
    return at::tensor(golden.at(key).at(0).get<std::vector<float>>());
  };
  CHECK(test::close(got.logprobs, want("logprobs"), 1e-6, 1e-6));
  CHECK(test::close(got.entropies, want("entropy"), 1e-5, 1e-6));
}

TEST_CASE("shifted exponentials agree with float64 and may be computed in place") {
  at::manual_seed(2);
  const auto logits = at::randn({1031}) * 5;
  auto out = at::empty_like(logits);
  exp_shifted(data(logits), 1031, 0.5F, 4.0F, out.data_ptr<float>());
  CHECK(relative_l2(out, (logits.to(at::kDouble) * 0.5 - 4.0).exp()) < 1e-6);
  auto in_place = logits.clone();
  exp_shifted(data(in_place), 1031, 0.5F, 4.0F, in_place.data_ptr<float>());
  CHECK(test::same_bits(in_place, out));
}

TEST_CASE("logits of a row do not depend on the other rows, also from bfloat16") {
  at::manual_seed(3);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const auto x = at::randn({37, 48}).to(type);
    const Weight weight = {at::randn({2100, 48}).to(type), {}};
    const auto all = logits(x, weight);
    CHECK((all.scalar_type() == at::kFloat));
    CHECK(relative_l2(all, x.to(at::kDouble).mm(weight.value.to(at::kDouble).t())) < 1e-6);
    for (const std::int64_t row : {0, 20, 36}) {
      CHECK(test::same_bits(logits(x.narrow(0, row, 1), weight), all.narrow(0, row, 1)));
    }
  }
}

// Terms of some rows out of order, several of one row, a listed support and banned ids.
struct Problem {
  at::Tensor x;
  at::Tensor weight;
  LogprobTerms terms;
};

Problem make_problem(std::int64_t num_rows, bool with_supports) {
  at::manual_seed(4);
  Problem p;
  p.x = at::randn({num_rows, 32});
  p.weight = at::randn({3001, 32}) * 0.4;
  std::vector<std::int64_t> rows = {5, 0, 5, 2};
  std::vector<std::int32_t> targets = {2047, 1, 7, 2989};
  for (std::int64_t row = 6; row < num_rows; row += 3) {
    rows.push_back(row);
    targets.push_back(static_cast<std::int32_t>(row * 37 % 2900) + 8);
  }
  p.terms.row = at::tensor(rows, at::kLong);
  p.terms.target = at::tensor(targets, at::kInt);
  p.terms.num_ids = 2990;
  p.terms.inverse_temperature = 1.25;
  if (with_supports) {
    p.terms.support.resize(num_rows);
    p.terms.support[5].only = {3, 7, 1200, 2047, 2048, 2700};
    p.terms.support[0].banned = {0, 2, 5, 1023, 1024, 2989};
  }
  return p;
}

// Float64 logits of a term's row, with -inf outside its support.
at::Tensor supported_logits(const Problem& p, const at::Tensor& logits, std::int64_t term) {
  const auto row = p.terms.row[term].item<std::int64_t>();
  const auto all = logits[row].narrow(0, 0, p.terms.num_ids) * p.terms.inverse_temperature;
  if (p.terms.support.empty()) {
    return all;
  }
  const RowSupport& support = p.terms.support[row];
  auto keep = at::full({p.terms.num_ids}, support.only.empty(), at::kBool);
  for (const auto id : support.only) {
    keep[id] = true;
  }
  for (const auto id : support.banned) {
    keep[id] = false;
  }
  return all.masked_fill(~keep, -1e30);
}

LogprobOutput plain_logprobs(const Problem& p, const at::Tensor& logits) {
  std::vector<at::Tensor> logprobs;
  std::vector<at::Tensor> entropies;
  for (std::int64_t t = 0; t < p.terms.row.numel(); ++t) {
    const auto log_p = supported_logits(p, logits, t).log_softmax(0);
    logprobs.push_back(log_p[p.terms.target[t].item<std::int64_t>()]);
    entropies.push_back(-(log_p.exp() * log_p).sum());
  }
  return {at::stack(logprobs), at::stack(entropies)};
}

LogprobOutput plain_logprobs(const Problem& p, const at::Tensor& x, const at::Tensor& weight) {
  return plain_logprobs(p, x.mm(weight.t()));
}

TEST_CASE("log-probabilities, entropies and their gradients agree with float64") {
  for (const bool with_supports : {false, true}) {
    CAPTURE(with_supports);
    const Problem p = make_problem(30, with_supports);
    const auto x64 = p.x.to(at::kDouble).requires_grad_();
    const auto w64 = p.weight.to(at::kDouble).requires_grad_();
    const LogprobOutput want = plain_logprobs(p, x64, w64);
    const auto x = p.x.clone().requires_grad_();
    const Weight weight = {p.weight, at::ones(p.weight.sizes())};
    const LogprobOutput got = token_logprobs(x, weight, p.terms);
    CHECK(test::close(got.logprobs.detach().to(at::kDouble), want.logprobs.detach(), 1e-5, 1e-5));
    CHECK(test::close(got.entropies.detach().to(at::kDouble), want.entropies.detach(), 1e-5, 1e-5));
    const auto g = at::randn({p.terms.row.numel()});
    const auto h = at::randn({p.terms.row.numel()});
    ((want.logprobs * g).sum() + (want.entropies * h).sum()).backward();
    ((got.logprobs * g).sum() + (got.entropies * h).sum()).backward();
    CHECK(relative_l2(x.grad(), x64.grad()) < 2e-5);
    CHECK(relative_l2(weight.grad - 1, w64.grad()) < 2e-5);
  }
}

TEST_CASE("kept logits give the bits of recomputed ones") {
  for (const bool with_supports : {false, true}) {
    Problem p = make_problem(30, with_supports);
    const auto g = at::randn({p.terms.row.numel()});
    const auto h = at::randn({p.terms.row.numel()});
    std::vector<at::Tensor> dx, dweight;
    for (const bool keep : {false, true}) {
      p.terms.keep_logits = keep;
      const auto x = p.x.clone().requires_grad_();
      const Weight weight = {p.weight, at::zeros(p.weight.sizes())};
      const LogprobOutput output = token_logprobs(x, weight, p.terms);
      ((output.logprobs * g).sum() + (output.entropies * h).sum()).backward();
      dx.push_back(x.grad());
      dweight.push_back(weight.grad);
    }
    CHECK(test::same_bits(dx[0], dx[1]));
    CHECK(test::same_bits(dweight[0], dweight[1]));
  }
}

TEST_CASE("only one of the outputs may have a gradient, and a frozen weight gets none") {
  const Problem p = make_problem(12, false);
  for (const bool entropy : {false, true}) {
    const auto x64 = p.x.to(at::kDouble).requires_grad_();
    const LogprobOutput want = plain_logprobs(p, x64, p.weight.to(at::kDouble));
    (entropy ? want.entropies : want.logprobs).sum().backward();
    const auto x = p.x.clone().requires_grad_();
    const LogprobOutput got = token_logprobs(x, {p.weight, {}}, p.terms);
    (entropy ? got.entropies : got.logprobs).sum().backward();
    CHECK(relative_l2(x.grad(), x64.grad()) < 2e-5);
  }
}

TEST_CASE("a trained weight gets its gradient also where x has none") {
  const Problem p = make_problem(9, false);
  const auto w64 = p.weight.to(at::kDouble).requires_grad_();
  plain_logprobs(p, p.x.to(at::kDouble), w64).logprobs.sum().backward();
  const Weight weight = {p.weight, at::zeros(p.weight.sizes())};
  token_logprobs(p.x, weight, p.terms).logprobs.sum().backward();
  CHECK(relative_l2(weight.grad, w64.grad()) < 2e-5);
}

// The sampler's way: a row's logits, then one reduction.
float sampled_logprob(const Problem& p, std::int64_t term) {
  const auto row = p.terms.row[term].item<std::int64_t>();
  auto row_logits = logits(p.x.narrow(0, row, 1), {p.weight, {}}).flatten();
  const float target = row_logits[p.terms.target[term].item<std::int64_t>()].item<float>();
  const auto scale = static_cast<float>(p.terms.inverse_temperature);
  if (!p.terms.support.empty() && !p.terms.support[row].only.empty()) {
    std::vector<float> listed;
    for (const auto id : p.terms.support[row].only) {
      listed.push_back(row_logits[id].item<float>());
    }
    return logprob_of(target, scale, reduce_listed(listed, scale));
  }
  if (!p.terms.support.empty()) {
    for (const auto id : p.terms.support[row].banned) {
      row_logits[id] = kBannedLogit;
    }
  }
  return logprob_of(target, scale, reduce_logits(data(row_logits), p.terms.num_ids, scale));
}

TEST_CASE("the trainer's value has the bits of the sampler's, whatever threads and instructions") {
  for (const std::int64_t num_rows : {7, 1500}) {
    const Problem p = make_problem(num_rows, true);
    std::vector<float> sampled;
    for (std::int64_t t = 0; t < p.terms.row.numel(); t += t < 8 ? 1 : 97) {
      sampled.push_back(sampled_logprob(p, t));
    }
    for (const Isa isa : supported_isas()) {
      CAPTURE(std::string(name_of(isa)));
      set_isa(num_rows > 100 ? "auto" : name_of(isa));  // the portable one is slow
      for (const int num_threads : {1, 2, 4}) {
        set_compute_threads(num_threads);
        const auto trained = token_logprobs(p.x, {p.weight, {}}, p.terms).logprobs;
        std::size_t i = 0;
        for (std::int64_t t = 0; t < p.terms.row.numel(); t += t < 8 ? 1 : 97) {
          CHECK(trained[t].item<float>() == sampled[i++]);
        }
      }
    }
    set_isa("auto");
    set_compute_threads(1);
  }
}

TEST_CASE("gradients have the same bits on any number of threads and instruction set") {
  const Problem p = make_problem(40, true);
  const auto run = [&] {
    const auto x = p.x.clone().requires_grad_();
    const Weight weight = {p.weight, at::zeros(p.weight.sizes())};
    const LogprobOutput out = token_logprobs(x, weight, p.terms);
    (out.logprobs.sum() - 0.1 * out.entropies.sum()).backward();
    return at::cat({x.grad(), weight.grad});
  };
  const auto want = run();
  for (const Isa isa : supported_isas()) {
    CAPTURE(std::string(name_of(isa)));
    set_isa(name_of(isa));
    set_compute_threads(2);
    CHECK(test::same_bits(run(), want));
  }
  set_isa("auto");
  set_compute_threads(1);
}

TEST_CASE("bfloat16 rows are scored in float32, and their gradients rounded") {
  Problem p = make_problem(10, true);
  p.x = p.x.to(at::kBFloat16);
  p.weight = p.weight.to(at::kBFloat16);
  const auto x64 = p.x.to(at::kDouble);
  const auto logits = x64.mm(p.weight.to(at::kDouble).t()).requires_grad_();
  const auto want = plain_logprobs(p, logits);
  const auto x = p.x.clone().requires_grad_();
  const Weight weight = {p.weight, at::zeros(p.weight.sizes(), at::kFloat)};
  const auto got = token_logprobs(x, weight, p.terms);
  CHECK(test::close(got.logprobs.detach().to(at::kDouble), want.logprobs.detach(), 1e-5, 1e-5));
  (want.logprobs.sum() - 0.1 * want.entropies.sum()).backward();
  (got.logprobs.sum() - 0.1 * got.entropies.sum()).backward();
  CHECK((x.grad().scalar_type() == at::kBFloat16));
  const auto dz = logits.grad().to(at::kBFloat16).to(at::kDouble);
  CHECK(relative_l2(x.grad(), dz.mm(p.weight.to(at::kDouble))) < 4e-3);
  CHECK(relative_l2(weight.grad, dz.t().mm(x64)) < 2e-5);
}

TEST_CASE("terms out of range and targets outside the support are refused, and no terms are fine") {
  const auto refuses = [](const Problem& bad) {
    CHECK_THROWS_AS(token_logprobs(bad.x, {bad.weight, {}}, bad.terms), Error);
  };
  Problem bad = make_problem(7, true);
  bad.terms.support[5].only = {3, 7};  // without the target 2047
  refuses(bad);
  bad = make_problem(7, true);
  bad.terms.support[0].banned = {1};
  refuses(bad);
  bad = make_problem(7, true);
  bad.terms.support[0].banned = {9, 4};  // not sorted
  refuses(bad);
  bad = make_problem(7, false);
  bad.terms.num_ids = 2000;  // below a target
  refuses(bad);
  bad = make_problem(7, false);
  bad.x = bad.x.narrow(0, 0, 5);  // row 5 is missing
  refuses(bad);
  Problem none = make_problem(7, false);
  none.terms.row = none.terms.row.narrow(0, 0, 0);
  none.terms.target = none.terms.target.narrow(0, 0, 0);
  CHECK(token_logprobs(none.x, {none.weight, {}}, none.terms).logprobs.numel() == 0);
}

}  // namespace
}  // namespace tandem::kernels
