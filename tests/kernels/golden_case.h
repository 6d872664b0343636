// The cases of tests/golden/attention: settings from cases.json, tensors from safetensors files.
#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <ATen/ATen.h>

namespace tandem::test {

struct GoldenCase {
  nlohmann::json settings;
  std::map<std::string, at::Tensor> tensors;

  [[nodiscard]] const at::Tensor& operator[](const std::string& name) const {
    return tensors.at(name);
  }

  /// A number that may be null in the file.
  [[nodiscard]] double number(const std::string& name) const {
    return settings[name].is_null() ? 0.0 : settings[name].get<double>();
  }
};

inline std::map<std::string, at::Tensor> read_tensors(const std::filesystem::path& path) {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"F32", at::kFloat}, {"I32", at::kInt}, {"I64", at::kLong}, {"U8", at::kByte}};
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  std::uint64_t header_size = 0;
  std::memcpy(&header_size, bytes.data(), sizeof header_size);
  const auto header = nlohmann::json::parse(bytes.substr(8, header_size));
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, info] : header.items()) {
    if (name != "__metadata__") {
      const auto shape = info["shape"].get<std::vector<std::int64_t>>();
      at::Tensor tensor = at::empty(shape, kTypes.at(info["dtype"]));
      const auto offset = info["data_offsets"][0].get<std::uint64_t>();
      std::memcpy(tensor.data_ptr(), bytes.data() + 8 + header_size + offset, tensor.nbytes());
      tensors[name] = tensor;
    }
  }
  return tensors;
}

inline std::vector<GoldenCase> attention_cases() {
  const std::filesystem::path folder = "tests/golden/attention";
  std::ifstream stream(folder / "cases.json");
  const auto index = nlohmann::json::parse(stream);
  std::vector<GoldenCase> cases;
  for (const auto& settings : index["cases"]) {
    cases.push_back({settings, read_tensors(folder / settings["file"].get<std::string>())});
  }
  return cases;
}

}  // namespace tandem::test
