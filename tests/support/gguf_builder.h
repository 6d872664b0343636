// Small GGUF files made in memory, whole or broken on purpose.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace tandem::test {

class GgufBuilder {
 public:
  std::uint32_t version = 3;

  static std::string u32(std::uint32_t value) { return raw(&value, sizeof(value)); }
  static std::string u64(std::uint64_t value) { return raw(&value, sizeof(value)); }
  static std::string text(const std::string& value) { return u64(value.size()) + value; }

  /// A metadata entry of the type id, its value already as bytes.
  GgufBuilder& entry(const std::string& key, std::uint32_t type, const std::string& bytes) {
    metadata_ += text(key) + u32(type) + bytes;
    ++num_entries_;
    return *this;
  }
  GgufBuilder& integer(const std::string& key, std::uint32_t value) {
    return entry(key, 4, u32(value));
  }
  GgufBuilder& number(const std::string& key, float value) {
    return entry(key, 6, raw(&value, sizeof(value)));
  }
  GgufBuilder& string(const std::string& key, const std::string& value) {
    return entry(key, 8, text(value));
  }

  /// A tensor, its dimensions as the file has them (innermost first).
  GgufBuilder& tensor(const std::string& name,
                      const std::vector<std::uint64_t>& dimensions,
                      std::uint32_t type,
                      std::uint64_t offset) {
    tensors_ += text(name) + u32(static_cast<std::uint32_t>(dimensions.size()));
    for (const std::uint64_t size : dimensions) {
      tensors_ += u64(size);
    }
    tensors_ += u32(type) + u64(offset);
    ++num_tensors_;
    return *this;
  }

  /// An F32 tensor with its values, after all earlier ones.
  GgufBuilder& floats(const std::string& name,
                      const std::vector<std::uint64_t>& dimensions,
                      const std::vector<float>& values) {
    data_.resize((data_.size() + 31) / 32 * 32, '\0');
    tensor(name, dimensions, 0, data_.size());
    data_ += raw(values.data(), values.size() * sizeof(float));
    return *this;
  }

  GgufBuilder& data(const std::string& bytes) {
    data_ += bytes;
    return *this;
  }

  [[nodiscard]] std::string build() const {
    std::string file =
        "GGUF" + u32(version) + u64(num_tensors_) + u64(num_entries_) + metadata_ + tensors_;
    file.resize((file.size() + 31) / 32 * 32, '\0');
    return file + data_;
  }

 private:
  static std::string raw(const void* values, std::size_t num_bytes) {
    std::string bytes(num_bytes, '\0');
    if (num_bytes != 0) {
      std::memcpy(bytes.data(), values, num_bytes);
    }
    return bytes;
  }

  std::string metadata_;
  std::string tensors_;
  std::string data_;
  std::uint64_t num_entries_ = 0;
  std::uint64_t num_tensors_ = 0;
};

}  // namespace tandem::test
