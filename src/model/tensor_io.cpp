// The parts of the file readers that make tensors.
#include "model/tensor_io.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <ATen/ATen.h>

#include "base/error.h"
#include "model/gguf.h"
#include "model/in_quotes.h"
#include "model/safetensors_writer.h"

namespace tandem::model {
namespace {

struct DtypeName {
  std::string_view name;
  at::ScalarType dtype;
};

constexpr std::array kStored = {
    DtypeName{"F64", at::kDouble},
    DtypeName{"F32", at::kFloat},
    DtypeName{"F16", at::kHalf},
    DtypeName{"BF16", at::kBFloat16},
    DtypeName{"I64", at::kLong},
    DtypeName{"I32", at::kInt},
    DtypeName{"I16", at::kShort},
    DtypeName{"I8", at::kChar},
    DtypeName{"U8", at::kByte},
    DtypeName{"BOOL", at::kBool},
    DtypeName{"F8_E4M3", at::kFloat8_e4m3fn},
    DtypeName{"F8_E5M2", at::kFloat8_e5m2},
};

constexpr std::array kConfigured = {
    DtypeName{"float32", at::kFloat},
    DtypeName{"bfloat16", at::kBFloat16},
    DtypeName{"float16", at::kHalf},
};

at::ScalarType find_dtype(std::span<const DtypeName> table,
                          const std::string& name,
                          const std::string& where) {
  std::string supported;
  for (const DtypeName& row : table) {
    if (row.name == name) {
      return row.dtype;
    }
    supported += (supported.empty() ? "" : ", ") + std::string(row.name);
  }
  fail<UserError>(
      "{}: dtype {} is not supported; supported: {}", where, in_quotes(name), supported);
}

}  // namespace

at::ScalarType dtype_of_safetensors(const std::string& dtype, const std::string& where) {
  return find_dtype(kStored, dtype, where);
}

at::ScalarType dtype_of_config(const std::string& dtype, const std::string& where) {
  return find_dtype(kConfigured, dtype, where);
}

std::string dtype_to_safetensors(at::ScalarType dtype) {
  const auto found = std::find_if(
      kStored.begin(), kStored.end(), [&](const DtypeName& row) { return row.dtype == dtype; });
  TANDEM_CHECK(found != kStored.end(), "dtype {} cannot be stored", at::toString(dtype));
  return std::string(found->name);
}

std::span<const std::byte> tensor_bytes(const at::Tensor& tensor) {
  TANDEM_CHECK(tensor.device().is_cpu() && tensor.is_contiguous(), "the tensor is no plain memory");
  return {static_cast<const std::byte*>(tensor.const_data_ptr()), tensor.nbytes()};
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const TensorInfo* info = find(name);
  if (info == nullptr) {
    fail<UserError>("{}: has no tensor {}", path().string(), in_quotes(name));
  }
  const auto where = path().string() + ": tensor " + in_quotes(name);
  // A copy: the format promises no alignment, and a mapping must not outlive its file.
  at::Tensor result = at::empty(info->shape, dtype_of_safetensors(info->dtype, where));
  const auto source = bytes(*info);
  if (!source.empty()) {
    std::memcpy(result.mutable_data_ptr(), source.data(), source.size());
  }
  return result;
}

void write_safetensors(const std::filesystem::path& path,
                       std::span<const std::pair<std::string, at::Tensor>> tensors,
                       const std::map<std::string, std::string>& metadata) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : tensors) {
    infos.push_back({.name = name,
                     .dtype = dtype_to_safetensors(tensor.scalar_type()),
                     .shape = tensor.sizes().vec()});
  }
  SafetensorsWriter writer(path, std::move(infos), metadata);
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor plain = tensor.detach().cpu().contiguous();
    writer.append(tensor_bytes(plain));
  }
  writer.close();
}

at::Tensor GgufFile::dequantize(const std::string& name) const {
  const GgufTensor* found = find(name);
  if (found == nullptr) {
    fail<UserError>("{}: has no tensor {}", path().string(), in_quotes(name));
  }
  at::Tensor result = at::empty(found->shape, at::kFloat);
  dequantize_into(*found,
                  {result.mutable_data_ptr<float>(), static_cast<std::size_t>(result.numel())});
  return result;
}

}  // namespace tandem::model
