// Arithmetic on sizes that come out of files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace tandem::model {

/// The product of a shape, or nothing when an entry is negative or it leaves 63 bits.
inline std::optional<std::int64_t> checked_product(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  bool empty = false;
  for (const std::int64_t size : shape) {
    empty = empty || size == 0;
    if (size < 0 || (size > 0 && __builtin_mul_overflow(product, size, &product))) {
      return std::nullopt;
    }
  }
  return empty ? 0 : product;
}

}  // namespace tandem::model
