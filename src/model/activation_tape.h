// What the layers' products gave while sampling, kept so that training need not compute it again.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/phase.h"
#include "base/reserved_memory.h"
#include "model/config.h"

namespace tandem::model {

/// The products of a decoder layer: nearly all of a forward pass's work.
enum class Product { kQkv, kO, kGateUp, kDown };

/// Rows of products' outputs, one for each row that the sampler computed since `begin`.
///
/// A row is the same bits wherever it is computed, so a training pass over rows that were sampled
/// with the same weights takes them from here. Memory is reserved once; its pages come with the
/// first rows and stay. Not thread safe.
class ActivationTape {
 public:
  /// Room for `capacity` rows. Throws MachineError when the reservation fails.
  ActivationTape(const ModelConfig& config, at::ScalarType dtype, std::int64_t capacity);

  /// Empties the tape for rows of these weights. Rows of others are never handed out.
  void begin(WeightVersion version);

  /// Nothing is kept until `begin`; the pages stay for the next rows.
  void end() { begin(kNone); }

  /// The number of the first of `count` new rows, or nothing when the tape is full or not begun:
  /// the rows are then not kept.
  [[nodiscard]] std::optional<std::int64_t> append(std::int64_t count);

  /// Keeps y [R, W], the outputs of rows first_row, first_row + 1, ...
  void put(std::size_t layer, Product product, std::int64_t first_row, const at::Tensor& y);

  /// Kept outputs [T, W] of rows [T] int32, as a copy.
  [[nodiscard]] at::Tensor take(std::size_t layer, Product product, const at::Tensor& rows) const;

  [[nodiscard]] WeightVersion version() const { return version_; }
  [[nodiscard]] std::int64_t num_rows() const { return num_rows_; }

  /// Bytes that one row takes.
  [[nodiscard]] static std::int64_t row_bytes(const ModelConfig& config,
                                              std::int64_t bytes_per_weight);

 private:
  [[nodiscard]] const at::Tensor& at(std::size_t layer, Product product) const {
    return outputs_[4 * layer + static_cast<std::size_t>(product)];
  }

  static constexpr WeightVersion kNone = -1;

  std::int64_t capacity_;
  ReservedMemory memory_;
  std::vector<at::Tensor> outputs_;  // [layers * 4], each [capacity, W]
  WeightVersion version_ = kNone;
  std::int64_t num_rows_ = 0;
};

/// A tape while one pass writes to it: the pass's rows are first_row, first_row + 1, ...
struct TapeWriter {
  ActivationTape* tape = nullptr;
  std::int64_t first_row = 0;
};

/// A tape while one pass reads from it.
struct TapeReader {
  const ActivationTape* tape = nullptr;
  at::Tensor rows;  // [R] int32: where each row of the pass is
};

}  // namespace tandem::model
