// A file seen as bytes, without reading it first.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace tandem::model {

/// A read-only mapping of a whole file. An empty file maps to no bytes.
class MappedFile {
 public:
  /// Throws UserError naming the file when it is missing, a folder or unreadable.
  explicit MappedFile(const std::filesystem::path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tandem::model
