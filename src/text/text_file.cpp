#include "text/text_file.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include <zlib.h>

#include "base/error.h"

namespace tandem::text {
namespace {

constexpr int kGzipWindow = 15 + 16;  // zlib's code for "gzip header expected"

// Ends the zlib stream on every way out.
class Inflater {
 public:
  Inflater() { TANDEM_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK, "zlib does not start"); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }

  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

std::string read_plain(const std::filesystem::path& path, std::size_t max_bytes) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) {
    fail<UserError>("{}: not a readable file: {}", path.string(), error.message());
  }
  if (size > max_bytes) {
    fail<UserError>(
        "{}: {} bytes are more than the {} that are read", path.string(), size, max_bytes);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    fail<MachineError>("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
  std::string bytes(size, '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(size));
  if (static_cast<std::size_t>(stream.gcount()) != size) {
    fail<MachineError>("{}: ended after {} of {} bytes", path.string(), stream.gcount(), size);
  }
  return bytes;
}

}  // namespace

std::string gunzip(std::string_view compressed, const std::string& name, std::size_t max_bytes) {
  Inflater inflater;
  z_stream& stream = inflater.stream();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data()));
  stream.avail_in = static_cast<uInt>(compressed.size());
  std::string out;
  std::array<char, 1U << 16U> buffer{};
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = inflate(&stream, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END) {
      const char* why = status == Z_BUF_ERROR ? "it ends early" : "its data is damaged";
      fail<UserError>("{}: not a whole gzip file: {}", name, why);
    }
    out.append(buffer.data(), buffer.size() - stream.avail_out);
    if (out.size() > max_bytes) {
      fail<UserError>(
          "{}: uncompressed it is larger than the {} bytes that are read", name, max_bytes);
    }
  }
  return out;
}

std::optional<std::string> read_text_file(const std::filesystem::path& path,
                                          std::size_t max_bytes) {
  if (std::filesystem::exists(path)) {
    return read_plain(path, max_bytes);
  }
  const std::filesystem::path compressed = path.string() + ".gz";
  if (std::filesystem::exists(compressed)) {
    return gunzip(read_plain(compressed, max_bytes), compressed.string(), max_bytes);
  }
  return std::nullopt;
}

}  // namespace tandem::text
