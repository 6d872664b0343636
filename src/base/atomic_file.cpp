#include "base/atomic_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fcntl.h>
#include <unistd.h>

#include "base/error.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporaryPrefix = ".tmp-";

fs::path temporary_for(const fs::path& path) {
  return path.parent_path() /
         fmt::format("{}{}-{}", kTemporaryPrefix, path.filename().string(), ::getpid());
}

void sync_path(const fs::path& path, int flags) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC);
  if (fd < 0) {
    fail<MachineError>("{}: cannot be opened to sync it: {}", path.string(), std::strerror(errno));
  }
  const int result = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  // Some file systems (FUSE, tmpfs variants) do not support it: that is not a failure to write.
  if (result != 0 && error != EINVAL && error != ENOTSUP) {
    fail<MachineError>("{}: cannot be synced: {}", path.string(), std::strerror(error));
  }
}

// Errors name `target`, which the user knows, not the file beside it.
void write_and_sync(const fs::path& path, const fs::path& target, std::string_view content) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    fs::remove(path, ignored);
    fail<MachineError>("{}: cannot be written: {}", target.string(), reason);
  }
  sync_path(path, O_RDONLY);
}

void sync_tree(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    sync_path(entry.path(), entry.is_directory() ? O_RDONLY | O_DIRECTORY : O_RDONLY);
  }
  sync_path(folder, O_RDONLY | O_DIRECTORY);
}

}  // namespace

std::string read_file(const fs::path& path, std::uintmax_t max_bytes) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fail<UserError>("{}: is a folder, a file was expected", path.string());
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    fail<UserError>("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  const auto size = fs::file_size(path, error);
  if (!error && size > max_bytes) {
    fail<UserError>("{}: has {} bytes, more than the {} allowed", path.string(), size, max_bytes);
  }
  std::string content((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) {
    fail<UserError>("{}: cannot be read: {}", path.string(), std::strerror(errno));
  }
  return content;
}

void write_file_atomic(const fs::path& path, std::string_view content) {
  const fs::path temporary = temporary_for(path);
  write_and_sync(temporary, path, content);
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    fail<MachineError>("{}: cannot be replaced: {}", path.string(), error.message());
  }
}

void write_folder_atomic(const fs::path& path, const std::function<void(const fs::path&)>& fill) {
  const fs::path temporary = temporary_for(path);
  const fs::path replaced = temporary.string() + "-old";
  std::error_code ignored;
  try {
    fs::remove_all(temporary);
    fs::create_directories(temporary);
    fill(temporary);
    sync_tree(temporary);
    if (fs::exists(path)) {
      fs::rename(path, replaced);
    }
    fs::rename(temporary, path);
    if (path.has_parent_path()) {
      sync_path(path.parent_path(), O_RDONLY | O_DIRECTORY);
    }
    fs::remove_all(replaced, ignored);
  } catch (const fs::filesystem_error& e) {
    fs::remove_all(temporary, ignored);
    fail<MachineError>("{}: cannot be written: {}", path.string(), e.code().message());
  } catch (...) {
    fs::remove_all(temporary, ignored);
    throw;
  }
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().filename().string().starts_with(kTemporaryPrefix)) {
      std::error_code ignored;
      fs::remove_all(entry.path(), ignored);
    }
  }
}

}  // namespace tandem
