// Reads the small golden files of the trainer's tests.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/atomic_file.h"

namespace tandem::trainer::test {

using Rows = std::vector<std::vector<double>>;

/// A JSON file below tests/golden; the commands that made it are in the data's own README.
inline nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(read_file(std::filesystem::path("tests/golden") / name));
}

inline Rows rows_of(const nlohmann::json& json) {
  return json.get<Rows>();
}

/// The tensors of a safetensors file, as float: enough for F32 and BF16 files of our own making.
class GoldenTensors {
 public:
  explicit GoldenTensors(const std::string& name)
      : bytes_(read_file(std::filesystem::path("tests/golden") / name)) {
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, bytes_.data(), sizeof(header_size));
    header_ = nlohmann::json::parse(bytes_.substr(8, header_size));
    data_ = 8 + header_size;
  }

  [[nodiscard]] std::vector<std::int64_t> shape(const std::string& tensor) const {
    return header_.at(tensor).at("shape").get<std::vector<std::int64_t>>();
  }

  [[nodiscard]] std::vector<float> values(const std::string& tensor) const {
    const auto& entry = header_.at(tensor);
    const bool bf16 = entry.at("dtype") == "BF16";
    const std::size_t begin = entry.at("data_offsets").at(0).get<std::size_t>();
    const std::size_t end = entry.at("data_offsets").at(1).get<std::size_t>();
    const std::size_t width = bf16 ? 2 : 4;
    std::vector<float> result;
    for (std::size_t at = begin; at < end; at += width) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes_.data() + data_ + at, width);
      result.push_back(std::bit_cast<float>(bf16 ? bits << 16 : bits));
    }
    return result;
  }

 private:
  std::string bytes_;
  nlohmann::json header_;
  std::size_t data_ = 0;
};

}  // namespace tandem::trainer::test
