// Rates of attention and of the log-probabilities over the vocabulary, for SmolLM2-135M's shapes
// and one of wider heads.  attention_bench [THREADS [SECONDS_A_CASE [wall|cpu [PART_OF_NAME]]]]
//
// Rates count the pairs of query and key that a row sees: 4 D operations each forward, 10 D
// backward.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <ATen/ATen.h>

#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/isa.h"
#include "kernels/vocab.h"
#include "support/bench.h"

namespace tandem {
namespace {

double seconds_a_case = 0.3;
bool cpu_time = false;
std::string filter;

template <class Work>
void report(const std::string& name, double flops, Work&& work) {
  if (name.find(filter) == std::string::npos) {
    return;
  }
  const bench::Times times = bench::measure(work, seconds_a_case, cpu_time);
  fmt::print(
      R"({{"name": "{}", "threads": {}, "isa": "{}", "best_ms": {:.3f}, "median_ms": {:.3f}, )"
      R"("gflops": {:.1f}}})"
      "\n",
      name,
      compute_pool().num_threads(),
      kernels::name_of(kernels::isa()),
      times.best_s * 1e3,
      times.median_s * 1e3,
      flops / times.best_s * 1e-9);
  std::fflush(stdout);
}

struct Shape {
  const char* name;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t width;
};

struct Rows {
  std::vector<std::int32_t> positions;
  std::vector<std::int64_t> path_start;
  std::vector<std::int32_t> slots;
  std::int64_t num_pairs = 0;

  void add_row(std::int32_t position, std::int64_t start) {
    positions.push_back(position);
    path_start.push_back(start);
    num_pairs += position + 1;
  }

  [[nodiscard]] kernels::KeyPaths paths() const {
    return {at::tensor(positions, at::kInt),
            at::tensor(path_start, at::kLong),
            at::tensor(slots, at::kInt)};
  }
};

// Whole sequences, all rows of each.
Rows prefill(std::int32_t num_sequences, std::int32_t length) {
  Rows rows;
  rows.slots.resize(num_sequences * length);
  std::iota(rows.slots.begin(), rows.slots.end(), 0);
  for (std::int32_t s = 0; s < num_sequences; ++s) {
    for (std::int32_t j = 0; j < length; ++j) {
      rows.add_row(j, s * length);
    }
  }
  return rows;
}

// The last row of each sequence; groups of 8 have their first `shared` keys in common.
Rows decode(std::int32_t num_sequences, std::int32_t length, std::int32_t shared) {
  Rows rows;
  for (std::int32_t s = 0; s < num_sequences; ++s) {
    const auto start = static_cast<std::int64_t>(rows.slots.size());
    for (std::int32_t j = 0; j < length; ++j) {
      rows.slots.push_back((j < shared ? s / 8 * 8 : s) * length + j);
    }
    rows.add_row(length - 1, start);
  }
  return rows;
}

void bench_attention(const Shape& shape, const std::string& rows_name, const Rows& rows) {
  const auto num_rows = static_cast<std::int64_t>(rows.positions.size());
  const std::int64_t num_slots = *std::max_element(rows.slots.begin(), rows.slots.end()) + 1;
  const auto q = at::randn({num_rows, shape.heads, shape.width});
  const auto k = at::randn({num_slots, shape.kv_heads, shape.width});
  const auto v = at::randn({num_slots, shape.kv_heads, shape.width});
  const kernels::KeyPaths paths = rows.paths();
  const kernels::AttentionOptions options = {0.125, 0, 0};
  const double pairs = static_cast<double>(rows.num_pairs * shape.heads * shape.width);
  const std::string name = fmt::format("{} {}", shape.name, rows_name);
  report(name + " float", 4 * pairs, [&] { kernels::attention(q, k, v, paths, options); });
  const auto half = [](const at::Tensor& x) { return x.to(at::kBFloat16); };
  report(name + " bf16", 4 * pairs, [q = half(q), k = half(k), v = half(v), &paths, &options] {
    kernels::attention(q, k, v, paths, options);
  });
  if (num_rows > 512) {
    const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(); };
    report(name + " forward + backward",
           14 * pairs,
           [q = leaf(q), k = leaf(k), v = leaf(v), dout = at::randn_like(q), &paths, &options] {
             kernels::attention(q, k, v, paths, options).backward(dout);
           });
  }
}

void bench_vocab(std::int64_t num_rows) {
  constexpr std::int64_t kIds = 49152;
  constexpr std::int64_t kWidth = 576;
  const auto x = at::randn({num_rows, kWidth}).requires_grad_();
  const kernels::Weight weight = {at::randn({kIds, kWidth}) * 0.05, at::zeros({kIds, kWidth})};
  kernels::LogprobTerms terms;
  terms.row = at::arange(num_rows, at::kLong);
  terms.target = at::randint(kIds, {num_rows}, at::kInt);
  terms.num_ids = kIds;
  const double products = 2.0 * static_cast<double>(num_rows * kIds * kWidth);
  const std::string name = fmt::format("vocabulary 49152 x 576, {} rows", num_rows);
  const auto logits = kernels::logits(x, weight);
  report(name + " logits", products, [&] { kernels::logits(x, weight); });
  report(name + " reduce_logits", 0, [&] {
    for (std::int64_t row = 0; row < num_rows; ++row) {
      kernels::reduce_logits(logits.const_data_ptr<float>() + row * kIds, kIds, 1);
    }
  });
  report(name + " logprobs", products, [&] {
    kernels::token_logprobs(x.detach(), {weight.value, {}}, terms);
  });
  report(name + " logprobs forward + backward", 4 * products, [&] {
    kernels::token_logprobs(x, weight, terms).logprobs.sum().backward();
  });
}

void run() {
  for (const Shape& shape :
       {Shape{"9/3 heads of 64", 9, 3, 64}, Shape{"16/8 of 128", 16, 8, 128}}) {
    bench_attention(shape, "prefill 8 x 256", prefill(8, 256));
    bench_attention(shape, "prefill 1 x 2048", prefill(1, 2048));
    bench_attention(shape, "decode 128 x 384", decode(128, 384, 0));
    bench_attention(shape, "decode 128 x 384, 128 shared", decode(128, 384, 128));
  }
  if (filter.find("head") != std::string::npos) {
    return;  // making the vocabulary's weights takes longer than an attention case
  }
  for (const std::int64_t num_rows : {16, 512}) {
    bench_vocab(num_rows);
  }
}

}  // namespace
}  // namespace tandem

int main(int argc, char** argv) {
  tandem::set_compute_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  tandem::seconds_a_case = argc > 2 ? std::atof(argv[2]) : 0.3;
  tandem::cpu_time = argc > 3 && std::string_view(argv[3]) == "cpu";
  tandem::filter = argc > 4 ? argv[4] : "";
  tandem::run();
}
