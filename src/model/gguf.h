// The GGUF file format (version 3 and 2): typed metadata, then quantised tensors.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/config.h"
#include "model/gguf_types.h"
#include "model/mapped_file.h"

namespace at {
class Tensor;  // the parts that do not need LibTorch build without it
}

namespace tandem::model {

/// A metadata value. Integers of all widths become 64 bits wide, unsigned ones stay unsigned;
/// arrays of integers, floats and bools are widened in the same way.
using GgufValue = std::variant<std::uint64_t,
                               std::int64_t,
                               float,
                               double,
                               bool,
                               std::string,
                               std::vector<std::int64_t>,
                               std::vector<double>,
                               std::vector<bool>,
                               std::vector<std::string>>;

struct GgufTensor {
  std::string name;
  const GgufType* type = nullptr;   // a row of the table of types
  std::vector<std::int64_t> shape;  // outermost first; the file has the reverse
  std::uint64_t begin = 0;          // bytes from the start of the file
  std::uint64_t num_bytes = 0;
};

struct GgufHeader {
  std::uint32_t version = 0;
  std::uint64_t alignment = 32;
  std::map<std::string, GgufValue> metadata;
  std::vector<GgufTensor> tensors;  // in the order of the file
};

/// Reads and checks a header: counts and lengths fit the file, and every tensor lies inside it
/// without overlap. Throws UserError naming `file_name` and the place.
GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& file_name);

/// A mapped GGUF file. Immutable, so any thread may read.
class GgufFile {
 public:
  /// Throws UserError when the file is missing or damaged.
  explicit GgufFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const GgufHeader& header() const { return header_; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const { return header_.tensors; }
  [[nodiscard]] const GgufTensor* find(const std::string& name) const;

  /// A metadata value, or nothing when the key is absent. Throws UserError naming file and key when
  /// it is of another kind (for integers: any width that holds the value).
  [[nodiscard]] std::optional<std::int64_t> integer(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::optional<bool> boolean(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  [[nodiscard]] const std::vector<std::string>* texts(const std::string& key) const;
  [[nodiscard]] const std::vector<std::int64_t>* integers(const std::string& key) const;
  [[nodiscard]] const std::vector<double>* numbers(const std::string& key) const;

  /// The values of `tensor` in fp32; `out` has one entry a value.
  void dequantize_into(const GgufTensor& tensor, std::span<float> out) const;

  /// The tensor in fp32, shape outermost first, rows in the order of the file. Throws UserError for
  /// an unknown name.
  [[nodiscard]] at::Tensor dequantize(const std::string& name) const;

 private:
  MappedFile file_;
  GgufHeader header_;
  std::map<std::string, std::size_t> index_of_name_;
};

/// The config that the metadata and the tensors describe. Throws UserError: an architecture without
/// a family, a missing key, rotary scaling that is not supported.
ModelConfig config_from_gguf(const GgufFile& file);

}  // namespace tandem::model
