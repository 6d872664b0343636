#include "kernels/attention.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/attention_plan.h"
#include "kernels/autograd.h"
#include "kernels/cpu/table.h"
#include "kernels/scratch.h"

namespace tandem::kernels {
namespace {

// Tasks of the backward pass that a plan is cut into, whatever the number of threads.
constexpr std::int64_t kBackwardTasks = 8;

struct Inputs {
  at::Tensor q, k, v;  // heads D apart, columns contiguous
  KeyPaths paths;
  AttentionShape shape;
};

at::Tensor with_dense_heads(const at::Tensor& x) {
  return x.stride(2) == 1 && x.stride(1) == x.size(2) ? x : x.contiguous();
}

Inputs check_inputs(const at::Tensor& q,
                    const at::Tensor& k,
                    const at::Tensor& v,
                    const AttentionOptions& options) {
  TANDEM_CHECK(q.dim() == 3 && k.dim() == 3 && v.sizes() == k.sizes() && q.size(2) == k.size(2),
               "attention: q must be [R, N, D] and k, v [S, G, D]; they are {}, {}, {}",
               fmt::join(q.sizes(), "x"),
               fmt::join(k.sizes(), "x"),
               fmt::join(v.sizes(), "x"));
  TANDEM_CHECK(k.size(1) > 0 && q.size(1) % k.size(1) == 0 && q.size(1) > 0 && q.size(2) > 0,
               "attention: {} query heads for {} key-value heads of width {}",
               q.size(1),
               k.size(1),
               q.size(2));
  const auto type = q.scalar_type();
  TANDEM_CHECK((type == at::kFloat || type == at::kBFloat16) && k.scalar_type() == type &&
                   v.scalar_type() == type,
               "attention: q, k, v must be all float32 or all bfloat16");
  TANDEM_CHECK(options.window >= 0 && options.softcap >= 0,
               "attention: window is {}, softcap is {}",
               options.window,
               options.softcap);
  Inputs inputs;
  inputs.q = with_dense_heads(q);
  inputs.k = with_dense_heads(k);
  inputs.v = with_dense_heads(v);
  inputs.shape = {q.size(1),
                  k.size(1),
                  q.size(2),
                  options.window,
                  static_cast<float>(options.scale),
                  static_cast<float>(options.softcap)};
  return inputs;
}

AttentionForward forward_args(const Inputs& inputs, const at::Tensor& out, const at::Tensor& lse) {
  AttentionForward args;
  args.shape = inputs.shape;
  args.q = inputs.q.const_data_ptr();
  args.k = inputs.k.const_data_ptr();
  args.v = inputs.v.const_data_ptr();
  args.q_stride = inputs.q.stride(0);
  args.k_stride = inputs.k.stride(0);
  args.v_stride = inputs.v.stride(0);
  args.out = out.data_ptr();
  args.lse = lse.defined() ? lse.data_ptr<float>() : nullptr;
  return args;
}

float* scratch_for(const QueryBlock& block, const AttentionShape& shape) {
  const std::int64_t num_queries = block.num_rows * (shape.num_heads / shape.num_kv_heads);
  return thread_scratch(table().attention.scratch_size(num_queries, shape.head_dim));
}

void run_forward(const Inputs& inputs, const at::Tensor& out, const at::Tensor& lse) {
  const AttentionShape& shape = inputs.shape;
  const std::vector<QueryBlock> blocks =
      plan_blocks(inputs.paths, shape, inputs.q.size(0), inputs.k.size(0));
  const AttentionForward args = forward_args(inputs, out, lse);
  const AttentionTable& kernels = table().attention;
  const auto kernel =
      inputs.q.scalar_type() == at::kFloat ? kernels.forward_f32 : kernels.forward_bf16;
  compute_pool().parallel_for(std::ssize(blocks) * shape.num_kv_heads, [&](std::int64_t i) {
    const QueryBlock& block = blocks[i / shape.num_kv_heads];
    kernel(args, {block, i % shape.num_kv_heads, scratch_for(block, shape)});
  });
}

// The gradients of keys and values of one key-value head, from one chunk of blocks.
struct KeySums {
  std::unique_ptr<float[]> dk;
  std::unique_ptr<float[]> dv;
};

KeySums run_chunk(const AttentionBackward& args,
                  const std::vector<QueryBlock>& blocks,
                  const BlockChunk& chunk,
                  std::int64_t kv_head,
                  at::ScalarType type) {
  const AttentionShape& shape = args.forward.shape;
  const auto kernel =
      type == at::kFloat ? table().attention.backward_f32 : table().attention.backward_bf16;
  const std::int64_t size = chunk.num_slots * shape.head_dim;
  KeySums sums = {std::make_unique<float[]>(size), std::make_unique<float[]>(size)};
  const KeyGradient grad = {sums.dk.get(), sums.dv.get(), chunk.first_slot};
  for (std::int64_t i = chunk.first_block; i < chunk.last_block; ++i) {
    kernel(args, {blocks[i], kv_head, scratch_for(blocks[i], shape)}, grad);
  }
  return sums;
}

// dk, dv [S, G, D]: for each slot, the chunks' shares in order.
void add_chunks(const std::vector<BlockChunk>& chunks,
                const std::vector<KeySums>& sums,  // [chunks, G]
                const at::Tensor& dk,
                const at::Tensor& dv) {
  const std::int64_t num_heads = dk.size(1);
  const std::int64_t dim = dk.size(2);
  constexpr std::int64_t kSlotsPerTask = 64;
  const auto add = [&](float* to, const float* from) {
    for (std::int64_t d = 0; d < dim; ++d) {
      to[d] += from[d];
    }
  };
  auto* dk_data = dk.data_ptr<float>();
  auto* dv_data = dv.data_ptr<float>();
  const std::int64_t num_tasks = (dk.size(0) + kSlotsPerTask - 1) / kSlotsPerTask;
  compute_pool().parallel_for(num_tasks, [&](std::int64_t task) {
    const std::int64_t end = std::min(dk.size(0), (task + 1) * kSlotsPerTask);
    for (std::int64_t c = 0; c < std::ssize(chunks); ++c) {
      const std::int64_t first = std::max(task * kSlotsPerTask, chunks[c].first_slot);
      const std::int64_t last = std::min(end, chunks[c].first_slot + chunks[c].num_slots);
      for (std::int64_t slot = first; slot < last; ++slot) {
        for (std::int64_t g = 0; g < num_heads; ++g) {
          const std::int64_t from = (slot - chunks[c].first_slot) * dim;
          const std::int64_t to = (slot * num_heads + g) * dim;
          add(dk_data + to, sums[c * num_heads + g].dk.get() + from);
          add(dv_data + to, sums[c * num_heads + g].dv.get() + from);
        }
      }
    }
  });
}

std::vector<at::Tensor> run_backward(const Inputs& inputs,
                                     const at::Tensor& out,
                                     const at::Tensor& lse,
                                     const at::Tensor& dout) {
  const AttentionShape& shape = inputs.shape;
  const std::vector<QueryBlock> blocks =
      plan_blocks(inputs.paths, shape, inputs.q.size(0), inputs.k.size(0));
  const std::int64_t heads = shape.num_kv_heads;
  const std::vector<BlockChunk> chunks =
      chunk_blocks(blocks, shape, (kBackwardTasks + heads - 1) / heads);
  const at::ScalarType type = out.scalar_type();
  const at::Tensor dense_dout = dout.to(type).contiguous();
  const at::Tensor dq = at::empty_like(out);
  const at::Tensor dk = at::zeros(inputs.k.sizes(), at::kFloat);
  const at::Tensor dv = at::zeros(inputs.v.sizes(), at::kFloat);
  AttentionBackward args;
  args.forward = forward_args(inputs, out, lse);
  args.dout = dense_dout.const_data_ptr();
  args.dq = dq.data_ptr();
  std::vector<KeySums> sums(chunks.size() * heads);
  compute_pool().parallel_for(std::ssize(sums), [&](std::int64_t i) {
    sums[i] = run_chunk(args, blocks, chunks[i / heads], i % heads, type);
  });
  add_chunks(chunks, sums, dk, dv);
  return {dq, dk.to(type), dv.to(type)};
}

}  // namespace

at::Tensor attention(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     const KeyPaths& paths,
                     const AttentionOptions& options) {
  const bool differentiate = wants_gradient(q) || wants_gradient(k) || wants_gradient(v);
  const at::Tensor out = at::empty(q.sizes(), q.options().requires_grad(false));
  at::Tensor lse;
  Inputs inputs = check_inputs(q.detach(), k.detach(), v.detach(), options);
  inputs.paths = paths;
  if (differentiate) {
    lse = at::empty({q.size(0), q.size(1)}, at::kFloat);
  }
  run_forward(inputs, out, lse);
  if (differentiate) {
    record({out}, {q, k, v}, [inputs, saved = out.detach(), lse](const auto& grads) {
      return grads[0].defined() ? run_backward(inputs, saved, lse, grads[0])
                                : std::vector<at::Tensor>(3);
    });
  }
  return out;
}

}  // namespace tandem::kernels
