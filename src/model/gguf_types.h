// The storage types of GGUF tensors and how each becomes fp32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tandem::model {

/// One storage type: `values_per_block` values are stored in `bytes_per_block` bytes.
struct GgufType {
  std::uint32_t id;
  std::string_view name;
  std::int64_t values_per_block;
  std::int64_t bytes_per_block;

  /// Writes the values of one block to `out`.
  void (*dequantize_block)(const std::byte* block, float* out);
};

std::span<const GgufType> gguf_types();

/// The row of a type id, or null when this version cannot read it.
const GgufType* find_gguf_type(std::uint32_t id);

/// "F32, F16, Q4_0, ...", for messages.
std::string supported_gguf_types();

}  // namespace tandem::model
