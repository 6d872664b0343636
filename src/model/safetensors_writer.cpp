#include "model/safetensors_writer.h"

#include <bit>
#include <cerrno>
#include <cstring>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "model/checked_math.h"

namespace tandem::model {
namespace {

static_assert(std::endian::native == std::endian::little,
              "values are written as they lie in memory");

std::string header_text(const std::vector<TensorInfo>& tensors,
                        const std::map<std::string, std::string>& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    header["__metadata__"] = metadata;
  }
  for (const TensorInfo& info : tensors) {
    header[info.name] = {
        {"dtype", info.dtype}, {"shape", info.shape}, {"data_offsets", {info.begin, info.end}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data starts aligned
  return text;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& path,
                                     std::vector<TensorInfo> tensors,
                                     const std::map<std::string, std::string>& metadata)
    : path_(path), tensors_(std::move(tensors)) {
  std::uint64_t end = 0;
  for (TensorInfo& info : tensors_) {
    const auto num_values = checked_product(info.shape);
    TANDEM_CHECK(num_values.has_value(), "tensor {} has an impossible shape", info.name);
    info.begin = end;
    end += static_cast<std::uint64_t>(*num_values * safetensors_dtype_bytes(info.dtype));
    info.end = end;
  }
  const std::string text = header_text(tensors_, metadata);
  out_.open(path, std::ios::binary | std::ios::trunc);
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) {
    length[i] = static_cast<char>(text.size() >> (8 * i) & 0xff);
  }
  out_ << length << text;
  check_stream();
}

void SafetensorsWriter::append(std::span<const std::byte> bytes) {
  TANDEM_CHECK(next_ < tensors_.size(), "{}: more tensors than announced", path_.string());
  const TensorInfo& info = tensors_[next_++];
  TANDEM_CHECK(bytes.size() == info.end - info.begin,
               "{}: tensor {} has {} bytes instead of {}",
               path_.string(),
               info.name,
               bytes.size(),
               info.end - info.begin);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): streams write characters
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  check_stream();
}

void SafetensorsWriter::close() {
  TANDEM_CHECK(next_ == tensors_.size(),
               "{}: {} tensors of {} were written",
               path_.string(),
               next_,
               tensors_.size());
  out_.close();
  check_stream();
}

void SafetensorsWriter::check_stream() {
  if (!out_) {
    fail<MachineError>("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  }
}

}  // namespace tandem::model
