#include "kernels/heads.h"

#include <cstring>
#include <vector>

#include <ATen/ATen.h>

#include "kernels/autograd.h"
#include "kernels/checks.h"
#include "kernels/cpu/table.h"
#include "kernels/row_ranges.h"

namespace tandem::kernels {
namespace {

// How rows are turned. Without a table they are copied.
struct Turn {
  at::Tensor positions;  // [R] int32
  RotaryTable table;
  bool inverse = false;

  [[nodiscard]] Turn back() const { return {positions, table, !inverse}; }
};

template <class T>
void turn_rows(const Turn& turn, const RotaryArgs<T>& args, std::int64_t first) {
  if (!turn.table.cos.defined()) {
    const auto row_size = args.heads * args.width;
    for (std::int64_t r = 0; r < args.rows; ++r) {
      std::memcpy(args.y + r * args.y_stride,
                  args.x + r * args.x_stride,
                  static_cast<std::size_t>(row_size) * sizeof(T));
    }
    return;
  }
  RotaryArgs<T> rotated = args;
  rotated.positions = pointer<const std::int32_t>(turn.positions) + first;
  rotated.cos = pointer<const float>(turn.table.cos);
  rotated.sin = pointer<const float>(turn.table.sin);
  rotated.inverse = turn.inverse;
  if constexpr (std::is_same_v<T, float>) {
    table().elementwise.rotary_f32(rotated);
  } else {
    table().elementwise.rotary_bf16(rotated);
  }
}

// Heads of rows: those of a row side by side, the rows `stride` elements apart.
struct HeadRows {
  void* data = nullptr;
  std::int64_t stride = 0;
};

struct HeadBlock {
  std::int64_t rows = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

// to = the turned rows of `from`.
template <class T>
void turn_heads(const HeadBlock& block,
                const HeadRows& from,
                const Turn& turn,
                const HeadRows& to) {
  for_row_ranges(
      block.rows, block.heads * block.width, [&](std::int64_t first, std::int64_t count) {
        RotaryArgs<T> args{};
        args.x = static_cast<const T*>(from.data) + first * from.stride;
        args.y = static_cast<T*>(to.data) + first * to.stride;
        args.x_stride = from.stride;
        args.y_stride = to.stride;
        args.rows = count;
        args.heads = block.heads;
        args.width = block.width;
        turn_rows(turn, args, first);
      });
}

// The same of a contiguous x [R, N, D] into such a y.
void turn_tensor(const at::Tensor& x, const Turn& turn, const at::Tensor& y) {
  const HeadBlock block = {x.size(0), x.size(1), x.size(2)};
  const std::int64_t stride = block.heads * block.width;
  with_storage(x, [&](auto type) {
    turn_heads<decltype(type)>(block, {x.data_ptr(), stride}, turn, {y.data_ptr(), stride});
  });
}

void check_rotary(const at::Tensor& x, const Turn& turn, std::int64_t width) {
  const auto& [positions, angles, inverse] = turn;
  check_type(positions, at::kInt, "rotary: positions");
  check_contiguous(positions, "rotary: positions");
  check_type(angles.cos, at::kFloat, "rotary: cos");
  check_contiguous(angles.cos, "rotary: cos");
  check_type(angles.sin, at::kFloat, "rotary: sin");
  check_contiguous(angles.sin, "rotary: sin");
  TANDEM_CHECK(x.size(0) == positions.numel(),
               "rotary: {} positions for x of {} rows",
               positions.numel(),
               x.size(0));
  TANDEM_CHECK(angles.cos.dim() == 2 && angles.cos.sizes() == angles.sin.sizes() &&
                   2 * angles.cos.size(1) == width,
               "rotary: the table is not for heads of width {}",
               width);
  const auto* position = positions.const_data_ptr<std::int32_t>();
  for (std::int64_t r = 0; r < positions.numel(); ++r) {
    TANDEM_CHECK(position[r] >= 0 && position[r] < angles.cos.size(0),
                 "rotary: position {} is beyond the table of {}",
                 position[r],
                 angles.cos.size(0));
  }
}

// Turns q and k of `rows` [R, (N + 2 G) D] into or out of `heads`, and copies v.
void move_heads(const at::Tensor& rows,
                const HeadShape& shape,
                const Turn& turn,
                const Heads& heads,
                bool into_rows) {
  with_storage(rows, [&](auto type) {
    using T = decltype(type);
    T* place = pointer<T>(rows);
    const auto move = [&](const at::Tensor& own, const Turn& how) {
      const HeadBlock block = {rows.size(0), own.size(1), shape.head_dim};
      const HeadRows in_rows = {place, rows.size(1)};
      const HeadRows alone = {own.data_ptr(), block.heads * block.width};
      turn_heads<T>(block, into_rows ? alone : in_rows, how, into_rows ? in_rows : alone);
      place += block.heads * block.width;
    };
    move(heads.q, turn);
    move(heads.k, turn);
    move(heads.v, {});
  });
}

at::Tensor gradient_or_zeros(const at::Tensor& grad,
                             const at::Tensor& rows,
                             std::int64_t heads,
                             std::int64_t width) {
  return grad.defined() ? grad.contiguous()
                        : at::zeros({rows.size(0), heads, width}, rows.options());
}

Heads split(const at::Tensor& qkv, const HeadShape& shape, const Turn& turn) {
  const auto& [n, g, d] = shape;
  check_storage(qkv, "split_heads: qkv");
  check_contiguous(qkv, "split_heads: qkv");
  TANDEM_CHECK(qkv.dim() == 2 && qkv.size(1) == (n + 2 * g) * d,
               "split_heads: rows of {} for {} + 2 x {} heads of {}",
               qkv.size(-1),
               n,
               g,
               d);
  const std::int64_t rows = qkv.size(0);
  const Heads heads = {at::empty({rows, n, d}, qkv.options()),
                       at::empty({rows, g, d}, qkv.options()),
                       at::empty({rows, g, d}, qkv.options())};
  move_heads(qkv, shape, turn, heads, false);
  if (wants_gradient(qkv)) {
    const auto backward = [shape, back = turn.back(), options = qkv.options(), rows](
                              const std::vector<at::Tensor>& grads) {
      const auto dqkv =
          at::empty({rows, (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim}, options);
      const auto grad = [&](std::size_t i, std::int64_t count) {
        return gradient_or_zeros(grads[i], dqkv, count, shape.head_dim);
      };
      const Heads all = {
          grad(0, shape.num_heads), grad(1, shape.num_kv_heads), grad(2, shape.num_kv_heads)};
      move_heads(dqkv, shape, back, all, true);
      return std::vector<at::Tensor>{dqkv};
    };
    record({heads.q, heads.k, heads.v}, {qkv}, backward);
  }
  return heads;
}

}  // namespace

at::Tensor rotary(const at::Tensor& x, const at::Tensor& positions, const RotaryTable& table) {
  check_storage(x, "rotary: x");
  check_contiguous(x, "rotary: x");
  TANDEM_CHECK(x.dim() == 3, "rotary: x has {} dimensions, not 3", x.dim());
  const Turn turn = {positions, table};
  check_rotary(x, turn, x.size(2));
  const auto y = at::empty(x.sizes(), x.options());
  turn_tensor(x, turn, y);
  if (wants_gradient(x)) {
    record({y}, {x}, [back = turn.back()](const std::vector<at::Tensor>& dy) {
      const auto grad = dy[0].contiguous();
      const auto dx = at::empty(grad.sizes(), grad.options());
      turn_tensor(grad, back, dx);
      return std::vector<at::Tensor>{dx};
    });
  }
  return y;
}

Heads split_heads(const at::Tensor& qkv, const HeadShape& shape) {
  return split(qkv, shape, {});
}

Heads split_rotated_heads(const at::Tensor& qkv,
                          const HeadShape& shape,
                          const at::Tensor& positions,
                          const RotaryTable& table) {
  const Turn turn = {positions, table};
  check_rotary(qkv, turn, shape.head_dim);
  return split(qkv, shape, turn);
}

void store_rows(const at::Tensor& rows, const at::Tensor& slots, const at::Tensor& cache) {
  check_type(rows, cache.scalar_type(), "store_rows: rows");
  check_contiguous(rows, "store_rows: rows");
  check_contiguous(cache, "store_rows: cache");
  check_type(slots, at::kLong, "store_rows: slots");
  check_contiguous(slots, "store_rows: slots");
  const std::int64_t row_size = cache.size(1) * cache.size(2);
  TANDEM_CHECK(slots.numel() == rows.size(0) && rows.numel() == rows.size(0) * row_size,
               "store_rows: {} slots and {} elements for rows of {}",
               slots.numel(),
               rows.numel(),
               row_size);
  const auto row_bytes = static_cast<std::size_t>(row_size) * rows.itemsize();
  const auto* from = static_cast<const char*>(rows.const_data_ptr());
  auto* to = static_cast<char*>(cache.data_ptr());
  const auto* slot = slots.const_data_ptr<std::int64_t>();
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    TANDEM_CHECK(slot[r] >= 0 && slot[r] < cache.size(0),
                 "store_rows: slot {} of {}",
                 slot[r],
                 cache.size(0));
    std::memcpy(to + static_cast<std::size_t>(slot[r]) * row_bytes,
                from + static_cast<std::size_t>(r) * row_bytes,
                row_bytes);
  }
}

}  // namespace tandem::kernels
