// The safetensors file format: a JSON header, then the tensors' bytes.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/mapped_file.h"

namespace at {
class Tensor;  // the parts that do not need LibTorch build without it
}

namespace tandem::model {

struct TensorInfo {
  std::string name = {};
  std::string dtype = {};  // as the file spells it: "F32", "BF16", ...
  std::vector<std::int64_t> shape = {};
  std::uint64_t begin = 0;  // bytes from the start of the data section
  std::uint64_t end = 0;
};

/// The header of a safetensors file.
struct SafetensorsHeader {
  std::vector<TensorInfo> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  std::uint64_t data_begin = 0;  // bytes from the start of the file
};

/// Reads and checks a header: sizes agree with shapes, and tensors follow each other without holes
/// or overlap up to the end of the file. Throws UserError naming `file_name` and the place.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& file_name);

/// A mapped safetensors file. Immutable, so any thread may read.
class SafetensorsFile {
 public:
  /// Throws UserError when the file is missing or damaged.
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::vector<TensorInfo>& tensors() const { return header_.tensors; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const {
    return header_.metadata;
  }
  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }

  /// Null when there is no such tensor.
  [[nodiscard]] const TensorInfo* find(const std::string& name) const;

  /// The stored bytes of a tensor, little-endian, of any alignment.
  [[nodiscard]] std::span<const std::byte> bytes(const TensorInfo& info) const;

  /// A copy of the tensor in the file's dtype. Throws UserError for an unknown name and for a
  /// dtype that LibTorch does not have.
  [[nodiscard]] at::Tensor tensor(const std::string& name) const;

 private:
  MappedFile file_;
  SafetensorsHeader header_;
  std::map<std::string, std::size_t> index_of_name_;
};

/// Writes tensors (CPU, any strides) in the given order. Other tools refuse files whose metadata
/// lacks "format". Throws MachineError when the file cannot be written.
void write_safetensors(const std::filesystem::path& path,
                       std::span<const std::pair<std::string, at::Tensor>> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

}  // namespace tandem::model
