// Writing a safetensors file piece by piece, so that its tensors need not be in memory together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/safetensors.h"

namespace tandem::model {

/// Bytes of one value of a dtype as the format spells it. Throws Error for an unknown one.
std::int64_t safetensors_dtype_bytes(const std::string& dtype);

/// Writes the header at once, then the tensors' bytes in the announced order.
class SafetensorsWriter {
 public:
  /// `tensors` says name, dtype and shape; places are computed here. Throws MachineError when the
  /// file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path,
                    std::vector<TensorInfo> tensors,
                    const std::map<std::string, std::string>& metadata);

  /// The next tensor's bytes, little-endian. Throws Error when their number is not the announced
  /// one.
  void append(std::span<const std::byte> bytes);

  /// Call last: throws Error when tensors are missing, MachineError when the disk is full.
  void close();

 private:
  void check_stream();

  std::filesystem::path path_;
  std::vector<TensorInfo> tensors_;
  std::size_t next_ = 0;
  std::ofstream out_;
};

}  // namespace tandem::model
