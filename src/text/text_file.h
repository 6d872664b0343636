// Whole text files, plain or gzip, with a bound on their size.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace tandem::text {

/// No tokenizer file is larger than this; what is larger is refused before it fills the memory.
inline constexpr std::size_t kMaxTextFileBytes = std::size_t{512} << 20U;

/// The bytes of `path`, or of `path` + ".gz" uncompressed, or nothing where neither exists.
/// Throws UserError for a damaged or oversized file, MachineError where it cannot be read.
std::optional<std::string> read_text_file(const std::filesystem::path& path,
                                          std::size_t max_bytes = kMaxTextFileBytes);

/// The uncompressed content of a gzip stream; `name` is for errors.
std::string gunzip(std::string_view compressed, const std::string& name, std::size_t max_bytes);

}  // namespace tandem::text
