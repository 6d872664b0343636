// The parts of the file readers that make tensors.
#include <cstring>

#include <ATen/ATen.h>

#include "base/error.h"
#include "model/gguf.h"

namespace tandem::model {

at::Tensor GgufFile::dequantize(const std::string& name) const {
  const GgufTensor* found = find(name);
  if (found == nullptr) {
    fail<UserError>("{}: has no tensor '{}'", path().string(), name);
  }
  at::Tensor result = at::empty(found->shape, at::kFloat);
  dequantize_into(*found,
                  {result.mutable_data_ptr<float>(), static_cast<std::size_t>(result.numel())});
  return result;
}

}  // namespace tandem::model
