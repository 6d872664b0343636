// Dtypes between files, configs and LibTorch.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

namespace tandem::model {

/// "F32" to torch's float32, and so on. Throws UserError naming `where` for one that LibTorch
/// lacks.
at::ScalarType dtype_of_safetensors(const std::string& dtype, const std::string& where);

/// The reverse. Throws Error for a dtype that the format lacks.
std::string dtype_to_safetensors(at::ScalarType dtype);

/// "float32", "bfloat16" or "float16", as configs and options say it. Throws UserError naming
/// `where`.
at::ScalarType dtype_of_config(const std::string& dtype, const std::string& where);

/// The memory of a contiguous CPU tensor.
std::span<const std::byte> tensor_bytes(const at::Tensor& tensor);

}  // namespace tandem::model
