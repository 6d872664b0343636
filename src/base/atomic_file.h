// Files that are either whole or absent: written beside their place, synced, then renamed.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace tandem {

/// The whole content of `path`. Throws UserError naming the file and the reason, also when it is
/// larger than `max_bytes`.
std::string read_file(const std::filesystem::path& path, std::uintmax_t max_bytes = 1ull << 31);

/// Replaces `path` by `content`, or leaves it as it was. Throws MachineError (disk, permission).
void write_file_atomic(const std::filesystem::path& path, std::string_view content);

/// Fills a new folder beside `path` by `fill(temporary folder)`, syncs it, and renames it to
/// `path`.
///
/// An older folder of that name is replaced. When `fill` throws, the temporary folder is removed
/// and `path` is as before. A killed process leaves only a folder whose name starts with ".tmp-",
/// which `remove_leftovers` deletes.
void write_folder_atomic(const std::filesystem::path& path,
                         const std::function<void(const std::filesystem::path&)>& fill);

/// Deletes what killed writers left in `folder`.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace tandem
