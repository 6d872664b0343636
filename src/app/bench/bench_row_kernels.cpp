// The kernels between the products, at the model's shapes.
#include <numeric>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "app/bench/bench_case.h"
#include "app/bench/kernel_figures.h"
#include "base/thread_pool.h"
#include "kernels/attention.h"
#include "kernels/elementwise.h"
#include "kernels/heads.h"
#include "kernels/norm.h"
#include "kernels/vocab.h"
#include "trainer/adamw_kernel.h"

namespace tandem::app {
namespace {

// Enough rows that no cache holds them.
constexpr std::int64_t kRows = 8192;

at::Tensor random(const Session& session, at::IntArrayRef shape) {
  return at::randn(shape).to(session.weights->dtype());
}

at::Tensor ints(const std::vector<std::int32_t>& values) {
  return at::tensor(values, at::kInt);
}

// One sequence: all of its rows, or its last one `num_rows` times as in decoding.
kernels::KeyPaths paths_of(std::int64_t num_keys, std::int64_t num_rows) {
  std::vector<std::int32_t> positions(static_cast<std::size_t>(num_rows),
                                      static_cast<std::int32_t>(num_keys - 1));
  if (num_rows == num_keys) {
    std::iota(positions.begin(), positions.end(), 0);
  }
  return {
      ints(positions), at::zeros({num_rows}, at::kLong), at::arange(num_keys, at::dtype(at::kInt))};
}

// Attention counts 4 D operations for a query and a key that it sees, and 10 D for their backward.
void bench_attention(const Session& session, KernelFigures& figures) {
  const auto& c = session.decoder->config();
  const auto heads = [&](std::int64_t rows, std::int64_t count) {
    return random(session, {rows, count, c.head_dim});
  };
  const kernels::AttentionOptions options = {.scale = 0.125};
  constexpr std::int64_t kKeys = 512;
  const auto k = heads(kKeys, c.num_kv_heads);
  const auto v = heads(kKeys, c.num_kv_heads);
  const double per_pair = 4.0 * static_cast<double>(c.num_heads * c.head_dim);
  constexpr std::int64_t kBatch = 128;
  const auto last = heads(kBatch, c.num_heads);
  const auto decode = paths_of(kKeys, kBatch);
  figures.add_flops("attention_decode_128x512", per_pair * kBatch * kKeys, [&] {
    kernels::attention(last, k, v, decode, options);
  });
  const auto q = heads(kKeys, c.num_heads);
  const auto prefill = paths_of(kKeys, kKeys);
  const double pairs = static_cast<double>(kKeys * (kKeys + 1)) / 2;
  figures.add_flops("attention_prefill_512", per_pair * pairs, [&] {
    kernels::attention(q, k, v, prefill, options);
  });
  const c10::AutoGradMode with_gradients(true);
  const auto leaf = [](const at::Tensor& x) { return x.clone().requires_grad_(); };
  const auto ql = leaf(q), kl = leaf(k), vl = leaf(v), dout = at::randn_like(q);
  figures.add_flops("attention_train_512", 3.5 * per_pair * pairs, [&] {
    kernels::attention(ql, kl, vl, prefill, options).backward(dout);
  });
}

// Kernels that memory binds: the bytes that they read and write.
void bench_elementwise(const Session& session, KernelFigures& figures) {
  const auto& c = session.decoder->config();
  const auto& layer = session.weights->layers().at(0);
  const auto x = random(session, {kRows, c.hidden_size});
  const auto x_bytes = static_cast<double>(x.nbytes());
  figures.add_bytes("rms_norm", 2 * x_bytes, [&] {
    kernels::rms_norm(x, {layer.input_norm.value, {}}, c.rms_norm_eps);
  });
  figures.add_bytes("add", 3 * x_bytes, [&] { kernels::add(x, x); });
  const auto gates = random(session, {kRows, 2 * c.intermediate_size});
  figures.add_bytes(
      "gated_silu", 1.5 * static_cast<double>(gates.nbytes()), [&] { kernels::gated_silu(gates); });
  const kernels::HeadShape shape = {c.num_heads, c.num_kv_heads, c.head_dim};
  const auto qkv = random(session, {kRows, (c.num_heads + 2 * c.num_kv_heads) * c.head_dim});
  const auto angle = at::randn({kRows, c.head_dim / 2});
  const kernels::RotaryTable table = {at::cos(angle), at::sin(angle)};
  const auto positions = at::arange(kRows, at::dtype(at::kInt));
  figures.add_bytes("rotary_heads", 2 * static_cast<double>(qkv.nbytes()), [&] {
    kernels::split_rotated_heads(qkv, shape, positions, table);
  });
}

void bench_vocabulary(const Session& session, KernelFigures& figures) {
  constexpr std::int64_t kLogitRows = 256;
  const auto logits = at::randn({kLogitRows, session.decoder->config().vocab_size});
  figures.add_bytes("vocabulary_reduction", static_cast<double>(logits.nbytes()), [&] {
    compute_pool().parallel_for(kLogitRows, [&](std::int64_t row) {
      kernels::reduce_logits(
          logits.const_data_ptr<float>() + row * logits.size(1), logits.size(1), 1.0F);
    });
  });
}

// Weight, gradient and two moments are read, all but the gradient written.
void bench_adamw(KernelFigures& figures) {
  constexpr std::size_t kPiece = std::size_t{1} << 18;
  constexpr std::int64_t kPieces = 32;
  std::vector<std::vector<float>> state(4, std::vector<float>(kPiece * kPieces, 1e-3F));
  const trainer::AdamWScalars scalars = {.beta1 = 0.9F,
                                         .one_minus_beta1 = 0.1F,
                                         .beta2 = 0.99F,
                                         .one_minus_beta2 = 0.01F,
                                         .step_size = 1e-6F,
                                         .epsilon = 1e-8F};
  constexpr double kBytes = 7.0 * sizeof(float) * kPiece * kPieces;
  figures.add_bytes("adamw", kBytes, [&] {
    compute_pool().parallel_for(kPieces, [&](std::int64_t piece) {
      const auto part = [&](std::size_t i) {
        return std::span(state[i]).subspan(static_cast<std::size_t>(piece) * kPiece, kPiece);
      };
      trainer::adamw_update({part(0), part(1), part(2), part(3)}, scalars);
    });
  });
}

}  // namespace

void bench_row_kernels(const Session& session, KernelFigures& figures) {
  bench_attention(session, figures);
  bench_elementwise(session, figures);
  bench_vocabulary(session, figures);
  bench_adamw(figures);
}

}  // namespace tandem::app
