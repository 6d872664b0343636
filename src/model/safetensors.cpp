#include "model/safetensors.h"

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "model/checked_math.h"
#include "model/in_quotes.h"
#include "model/json_fields.h"
#include "model/safetensors_writer.h"

namespace tandem::model {
namespace {

using nlohmann::json;

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::uint64_t kLongestHeader = 100'000'000;
constexpr std::string_view kRemedy = "fetch the file again";

struct DtypeSize {
  std::string_view name;
  std::int64_t bytes;
};

constexpr std::array kDtypes = {
    DtypeSize{"F64", 8},
    DtypeSize{"F32", 4},
    DtypeSize{"F16", 2},
    DtypeSize{"BF16", 2},
    DtypeSize{"I64", 8},
    DtypeSize{"I32", 4},
    DtypeSize{"I16", 2},
    DtypeSize{"I8", 1},
    DtypeSize{"U64", 8},
    DtypeSize{"U32", 4},
    DtypeSize{"U16", 2},
    DtypeSize{"U8", 1},
    DtypeSize{"F8_E4M3", 1},
    DtypeSize{"F8_E5M2", 1},
    DtypeSize{"BOOL", 1},
};

std::uint64_t read_header_length(std::span<const std::byte> file, const std::string& file_name) {
  if (file.size() < kLengthBytes) {
    fail<UserError>(
        "{}: has {} bytes, too few for a safetensors file; {}", file_name, file.size(), kRemedy);
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    length |= std::to_integer<std::uint64_t>(file[i]) << (8 * i);
  }
  if (length > kLongestHeader || length > file.size() - kLengthBytes) {
    fail<UserError>(
        "{}: says its header has {} bytes, but the file has {}; truncated or no "
        "safetensors file, {}",
        file_name,
        length,
        file.size(),
        kRemedy);
  }
  return length;
}

// Names the file and the tensor in front of what is wrong.
[[noreturn]] void refuse(const std::string& file_name,
                         const std::string& tensor,
                         const std::string& problem) {
  fail<UserError>("{}: tensor {}: {}; {}", file_name, in_quotes(tensor), problem, kRemedy);
}

std::vector<std::int64_t> read_shape(const json& entry,
                                     const std::string& file_name,
                                     const std::string& name) {
  const auto found = entry.find("shape");
  if (found == entry.end() || !found->is_array()) {
    refuse(file_name, name, "has no shape");
  }
  std::vector<std::int64_t> shape;
  for (const json& size : *found) {
    if (!size.is_number_unsigned() || size.get<std::uint64_t>() > (1ull << 62)) {
      refuse(file_name, name, "its shape has an entry that is no size");
    }
    shape.push_back(size.get<std::int64_t>());
  }
  return shape;
}

TensorInfo read_entry(const std::string& name, const json& entry, const std::string& file_name) {
  if (!entry.is_object()) {
    refuse(file_name, name, "is described by no object");
  }
  TensorInfo info;
  info.name = name;
  const auto dtype = entry.find("dtype");
  if (dtype == entry.end() || !dtype->is_string()) {
    refuse(file_name, name, "has no dtype");
  }
  info.dtype = dtype->get<std::string>();
  info.shape = read_shape(entry, file_name, name);
  const auto offsets = entry.find("data_offsets");
  const bool two_offsets = offsets != entry.end() && offsets->is_array() && offsets->size() == 2 &&
                           (*offsets)[0].is_number_unsigned() && (*offsets)[1].is_number_unsigned();
  if (!two_offsets) {
    refuse(file_name, name, "has no pair of data_offsets");
  }
  info.begin = (*offsets)[0].get<std::uint64_t>();
  info.end = (*offsets)[1].get<std::uint64_t>();
  return info;
}

std::optional<std::int64_t> find_dtype_bytes(const std::string& dtype) {
  const auto known = std::find_if(
      kDtypes.begin(), kDtypes.end(), [&](const DtypeSize& row) { return row.name == dtype; });
  return known == kDtypes.end() ? std::nullopt : std::optional(known->bytes);
}

void check_size(const TensorInfo& info, const std::string& file_name) {
  const auto value_bytes = find_dtype_bytes(info.dtype);
  if (!value_bytes) {
    refuse(file_name, info.name, fmt::format("dtype {} is unknown", in_quotes(info.dtype)));
  }
  auto sizes = info.shape;
  sizes.push_back(*value_bytes);
  const auto num_bytes = checked_product(sizes);
  if (!num_bytes) {
    refuse(file_name, info.name, "its shape overflows");
  }
  if (info.end < info.begin || info.end - info.begin != static_cast<std::uint64_t>(*num_bytes)) {
    refuse(file_name,
           info.name,
           fmt::format(
               "data_offsets [{}, {}] do not hold its {} bytes", info.begin, info.end, *num_bytes));
  }
}

// Sorts by place and checks that the tensors tile the data section.
void check_places(SafetensorsHeader& header,
                  std::uint64_t data_bytes,
                  const std::string& file_name) {
  auto& tensors = header.tensors;
  std::sort(tensors.begin(), tensors.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::uint64_t end = 0;
  for (const TensorInfo& info : tensors) {
    if (info.begin != end) {
      refuse(file_name,
             info.name,
             fmt::format("starts at byte {} of the data, {} the one before it ends ({})",
                         info.begin,
                         info.begin < end ? "before" : "after",
                         end));
    }
    end = info.end;
  }
  if (end != data_bytes) {
    fail<UserError>(
        "{}: its tensors take {} bytes, but {} follow the header; truncated or "
        "damaged, {}",
        file_name,
        end,
        data_bytes,
        kRemedy);
  }
}

std::map<std::string, std::string> read_metadata(const json& entry, const std::string& file_name) {
  std::map<std::string, std::string> metadata;
  if (!entry.is_object()) {
    fail<UserError>("{}: __metadata__ is no object; {}", file_name, kRemedy);
  }
  for (const auto& [key, value] : entry.items()) {
    if (!value.is_string()) {
      fail<UserError>(
          "{}: __metadata__ entry {} is no string; {}", file_name, in_quotes(key), kRemedy);
    }
    metadata[key] = value.get<std::string>();
  }
  return metadata;
}

}  // namespace

std::int64_t safetensors_dtype_bytes(const std::string& dtype) {
  const auto bytes = find_dtype_bytes(dtype);
  TANDEM_CHECK(bytes.has_value(), "dtype {} is unknown", dtype);
  return *bytes;
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& file_name) {
  const std::uint64_t length = read_header_length(file, file_name);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes of a file as text
  const std::string_view text(reinterpret_cast<const char*>(file.data() + kLengthBytes), length);
  const json root = parse_json_object(text, file_name + " (header)");
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + length;
  for (const auto& [name, entry] : root.items()) {
    if (name == "__metadata__") {
      header.metadata = read_metadata(entry, file_name);
      continue;
    }
    header.tensors.push_back(read_entry(name, entry, file_name));
    check_size(header.tensors.back(), file_name);
  }
  check_places(header, file.size() - header.data_begin, file_name);
  return header;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(path), header_(parse_safetensors_header(file_.bytes(), path.string())) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i) {
    index_of_name_[header_.tensors[i].name] = i;
  }
}

const TensorInfo* SafetensorsFile::find(const std::string& name) const {
  const auto found = index_of_name_.find(name);
  return found == index_of_name_.end() ? nullptr : &header_.tensors[found->second];
}

std::span<const std::byte> SafetensorsFile::bytes(const TensorInfo& info) const {
  return file_.bytes().subspan(header_.data_begin + info.begin, info.end - info.begin);
}

}  // namespace tandem::model
