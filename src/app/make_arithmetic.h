// The quick start's task: small sums and products, train and validation questions apart.
#pragma once

#include <cstdint>
#include <filesystem>

namespace tandem::app {

struct ArithmeticFiles {
  std::int64_t num_train = 0;
  std::int64_t num_validation = 0;
};

/// Writes JSONL rows {"prompt", "answer", "data_source"} of all questions `a * b =` (a, b in 2..9)
/// and `ab + c =` (ab in 10..99, c in 2..9), but for the worked examples of the quick start's
/// recipe, shuffled by `seed`; every tenth goes to `validation`, so no question is in both. Files
/// are replaced whole.
ArithmeticFiles make_arithmetic(const std::filesystem::path& train,
                                const std::filesystem::path& validation,
                                std::uint64_t seed);

}  // namespace tandem::app
