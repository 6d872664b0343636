#include "model/activation_tape.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/thread_pool.h"

namespace tandem::model {
namespace {

std::array<std::int64_t, 4> widths(const ModelConfig& c) {
  return {(c.num_heads + 2 * c.num_kv_heads) * c.head_dim,
          c.hidden_size,
          2 * c.intermediate_size,
          c.hidden_size};
}

// f(i) for the rows of a copy, in tasks of some 100 KB.
template <class F>
void for_rows(std::int64_t rows, std::size_t row_bytes, F&& f) {
  const auto step = static_cast<std::int64_t>(1 + 100'000 / row_bytes);
  compute_pool().parallel_for((rows + step - 1) / step, [&](std::int64_t task) {
    for (std::int64_t i = task * step; i < std::min(rows, (task + 1) * step); ++i) {
      f(i);
    }
  });
}

}  // namespace

std::int64_t ActivationTape::row_bytes(const ModelConfig& config, std::int64_t bytes_per_weight) {
  std::int64_t elements = 0;
  for (const auto width : widths(config)) {
    elements += width;
  }
  return elements * config.num_layers * bytes_per_weight;
}

ActivationTape::ActivationTape(const ModelConfig& config,
                               at::ScalarType dtype,
                               std::int64_t capacity)
    : capacity_(capacity),
      memory_(row_bytes(config, static_cast<std::int64_t>(at::elementSize(dtype))) * capacity,
              "trainer.reuse_activations (sampled activations)") {
  char* next = memory_.data();
  for (std::int64_t layer = 0; layer < config.num_layers; ++layer) {
    for (const auto width : widths(config)) {
      outputs_.push_back(at::from_blob(next, {capacity, width}, at::dtype(dtype)));
      next += capacity * width * static_cast<std::int64_t>(at::elementSize(dtype));
    }
  }
}

void ActivationTape::begin(WeightVersion version) {
  version_ = version;
  num_rows_ = 0;
}

std::optional<std::int64_t> ActivationTape::append(std::int64_t count) {
  if (version_ == kNone || num_rows_ + count > capacity_) {
    return std::nullopt;
  }
  num_rows_ += count;
  return num_rows_ - count;
}

void ActivationTape::put(std::size_t layer,
                         Product product,
                         std::int64_t first_row,
                         const at::Tensor& y) {
  const auto& to = at(layer, product);
  TANDEM_CHECK(y.is_contiguous() && y.size(1) == to.size(1) && y.dtype() == to.dtype(),
               "the tape keeps rows of {}, not of {}",
               to.size(1),
               y.size(1));
  const auto bytes = static_cast<std::size_t>(y.size(1) * y.itemsize());
  const auto* from = static_cast<const char*>(y.const_data_ptr());
  auto* target = static_cast<char*>(to.data_ptr()) + static_cast<std::size_t>(first_row) * bytes;
  for_rows(y.size(0), bytes, [&](std::int64_t i) {
    const auto at_row = static_cast<std::size_t>(i) * bytes;
    std::memcpy(target + at_row, from + at_row, bytes);
  });
}

at::Tensor ActivationTape::take(std::size_t layer, Product product, const at::Tensor& rows) const {
  const auto& from = at(layer, product);
  const auto y = at::empty({rows.numel(), from.size(1)}, from.options());
  const auto bytes = static_cast<std::size_t>(from.size(1) * from.itemsize());
  const auto* row = rows.const_data_ptr<std::int32_t>();
  const auto* source = static_cast<const char*>(from.const_data_ptr());
  auto* to = static_cast<char*>(y.data_ptr());
  for_rows(rows.numel(), bytes, [&](std::int64_t i) {
    TANDEM_CHECK(row[i] >= 0 && row[i] < num_rows_, "the tape has no row {}", row[i]);
    std::memcpy(to + static_cast<std::size_t>(i) * bytes,
                source + static_cast<std::size_t>(row[i]) * bytes,
                bytes);
  });
  return y;
}

}  // namespace tandem::model
