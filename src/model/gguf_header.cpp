// Parsing and checking the header of a GGUF file.
#include <algorithm>
#include <bit>
#include <limits>
#include <set>
#include <type_traits>

#include "base/error.h"
#include "model/checked_math.h"
#include "model/gguf.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

constexpr std::string_view kRemedy = "fetch the file again";
constexpr std::uint64_t kLargestAlignment = 1 << 20;
constexpr std::uint32_t kMostDimensions = 4;

// The ids of metadata types in the file.
enum class ValueType : std::uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64,
};

// Reads little-endian values one after the other, and never past the end.
class Cursor {
 public:
  Cursor(std::span<const std::byte> bytes, const std::string& file_name)
      : bytes_(bytes), file_name_(file_name) {}

  template <class T>
  T read() {
    using Bits = std::conditional_t<
        sizeof(T) == 8,
        std::uint64_t,
        std::conditional_t<sizeof(T) == 4,
                           std::uint32_t,
                           std::conditional_t<sizeof(T) == 2, std::uint16_t, std::uint8_t>>>;
    std::uint64_t value = 0;
    const auto piece = take(sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) {
      value |= std::to_integer<std::uint64_t>(piece[i]) << (8 * i);
    }
    return std::bit_cast<T>(static_cast<Bits>(value));
  }

  std::string read_string() {
    const auto length = read<std::uint64_t>();
    const auto piece = take(length);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes of a file as text
    return {reinterpret_cast<const char*>(piece.data()), piece.size()};
  }

  [[nodiscard]] std::uint64_t position() const { return position_; }
  [[nodiscard]] std::uint64_t remaining() const { return bytes_.size() - position_; }

  [[noreturn]] void refuse(const std::string& problem) const {
    fail<UserError>("{}: {} (at byte {}); {}", file_name_, problem, position_, kRemedy);
  }

 private:
  std::span<const std::byte> take(std::uint64_t count) {
    if (count > remaining()) {
      refuse(fmt::format("the header wants {} more bytes, the file has {}", count, remaining()));
    }
    const auto piece = bytes_.subspan(position_, count);
    position_ += count;
    return piece;
  }

  std::span<const std::byte> bytes_;
  const std::string& file_name_;  // not owned
  std::uint64_t position_ = 0;
};

GgufValue read_scalar(Cursor& cursor, ValueType type) {
  switch (type) {
    case ValueType::kUint8:
      return std::uint64_t{cursor.read<std::uint8_t>()};
    case ValueType::kInt8:
      return std::int64_t{cursor.read<std::int8_t>()};
    case ValueType::kUint16:
      return std::uint64_t{cursor.read<std::uint16_t>()};
    case ValueType::kInt16:
      return std::int64_t{cursor.read<std::int16_t>()};
    case ValueType::kUint32:
      return std::uint64_t{cursor.read<std::uint32_t>()};
    case ValueType::kInt32:
      return std::int64_t{cursor.read<std::int32_t>()};
    case ValueType::kFloat32:
      return cursor.read<float>();
    case ValueType::kBool:
      return cursor.read<std::uint8_t>() != 0;
    case ValueType::kString:
      return cursor.read_string();
    case ValueType::kUint64:
      return cursor.read<std::uint64_t>();
    case ValueType::kInt64:
      return cursor.read<std::int64_t>();
    case ValueType::kFloat64:
      return cursor.read<double>();
    case ValueType::kArray:
      break;
  }
  cursor.refuse(fmt::format("metadata type {} is unknown", static_cast<std::uint32_t>(type)));
}

// All scalars of one array have one type, so the first alternative that fits stays.
template <class T>
GgufValue read_array_of(Cursor& cursor, ValueType type, std::uint64_t count) {
  std::vector<T> values;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::visit(
        [&](auto&& value) {
          using V = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::string> == std::is_same_v<V, std::string> &&
                        std::is_convertible_v<V, T>) {
            values.push_back(static_cast<T>(std::move(value)));
          }
        },
        read_scalar(cursor, type));
  }
  return values;
}

GgufValue read_array(Cursor& cursor) {
  const auto type = static_cast<ValueType>(cursor.read<std::uint32_t>());
  const auto count = cursor.read<std::uint64_t>();
  if (count > cursor.remaining()) {  // every entry takes a byte at least
    cursor.refuse(fmt::format("an array of {} entries does not fit the file", count));
  }
  switch (type) {
    case ValueType::kString:
      return read_array_of<std::string>(cursor, type, count);
    case ValueType::kBool:
      return read_array_of<bool>(cursor, type, count);
    case ValueType::kFloat32:
    case ValueType::kFloat64:
      return read_array_of<double>(cursor, type, count);
    default:  // integers; read_scalar refuses what is none
      return read_array_of<std::int64_t>(cursor, type, count);
  }
}

void read_metadata(Cursor& cursor, std::uint64_t count, GgufHeader& header) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = cursor.read_string();
    const auto type = static_cast<ValueType>(cursor.read<std::uint32_t>());
    GgufValue value = type == ValueType::kArray ? read_array(cursor) : read_scalar(cursor, type);
    if (!header.metadata.emplace(key, std::move(value)).second) {
      cursor.refuse(fmt::format("metadata key {} stands twice", in_quotes(key)));
    }
  }
  const auto alignment = header.metadata.find("general.alignment");
  if (alignment == header.metadata.end()) {
    return;
  }
  const auto* value = std::get_if<std::uint64_t>(&alignment->second);
  if (value == nullptr || !std::has_single_bit(*value) || *value > kLargestAlignment) {
    cursor.refuse("general.alignment is no small power of two");
  }
  header.alignment = *value;
}

// Sizes and type of one tensor; its place is checked when the end of the header is known.
GgufTensor read_tensor(Cursor& cursor) {
  GgufTensor tensor;
  tensor.name = cursor.read_string();
  const auto num_dimensions = cursor.read<std::uint32_t>();
  if (num_dimensions > kMostDimensions) {
    cursor.refuse(
        fmt::format("tensor {} has {} dimensions", in_quotes(tensor.name), num_dimensions));
  }
  for (std::uint32_t i = 0; i < num_dimensions; ++i) {
    tensor.shape.push_back(cursor.read<std::int64_t>());
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  const auto type_id = cursor.read<std::uint32_t>();
  tensor.type = find_gguf_type(type_id);
  if (tensor.type == nullptr) {
    cursor.refuse(fmt::format("tensor {} has the storage type {}; supported: {}",
                              in_quotes(tensor.name),
                              type_id,
                              supported_gguf_types()));
  }
  const std::int64_t row = tensor.shape.empty() ? 1 : tensor.shape.back();
  auto sizes = tensor.shape;
  sizes.push_back(tensor.type->bytes_per_block);
  const auto num_bytes = checked_product(sizes);
  if (!num_bytes || row % tensor.type->values_per_block != 0) {
    cursor.refuse(fmt::format("tensor {} has an impossible shape", in_quotes(tensor.name)));
  }
  tensor.num_bytes = static_cast<std::uint64_t>(*num_bytes / tensor.type->values_per_block);
  tensor.begin = cursor.read<std::uint64_t>();
  return tensor;
}

// Turns offsets into places in the file.
void place_tensors(const Cursor& cursor, std::uint64_t file_bytes, GgufHeader& header) {
  const std::uint64_t data_begin =
      (cursor.position() + header.alignment - 1) / header.alignment * header.alignment;
  const std::uint64_t data_bytes = file_bytes - std::min(data_begin, file_bytes);
  std::set<std::string> names;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (GgufTensor& tensor : header.tensors) {
    const std::string name = in_quotes(tensor.name);
    if (!names.insert(tensor.name).second) {
      cursor.refuse(fmt::format("tensor {} stands twice", name));
    }
    if (tensor.begin % header.alignment != 0) {
      cursor.refuse(fmt::format("tensor {} starts at an unaligned place", name));
    }
    if (tensor.begin > data_bytes || tensor.num_bytes > data_bytes - tensor.begin) {
      cursor.refuse(
          fmt::format("tensor {} reaches beyond the end of the file, which is truncated", name));
    }
    tensor.begin += data_begin;
    places.emplace_back(tensor.begin, tensor.begin + tensor.num_bytes);
  }
  std::sort(places.begin(), places.end());
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second) {
      cursor.refuse(fmt::format("two tensors overlap at byte {} of the file", places[i].first));
    }
  }
}

}  // namespace

GgufHeader parse_gguf_header(std::span<const std::byte> file, const std::string& file_name) {
  constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF"
  Cursor cursor(file, file_name);
  if (file.size() < sizeof(kMagic) || cursor.read<std::uint32_t>() != kMagic) {
    fail<UserError>("{}: is no GGUF file (its first bytes are not 'GGUF')", file_name);
  }
  GgufHeader header;
  header.version = cursor.read<std::uint32_t>();
  if (header.version != 2 && header.version != 3) {
    fail<UserError>("{}: has GGUF version {}; versions 2 and 3 (little-endian) are supported",
                    file_name,
                    header.version);
  }
  const auto num_tensors = cursor.read<std::uint64_t>();
  const auto num_values = cursor.read<std::uint64_t>();
  if (num_tensors > cursor.remaining() || num_values > cursor.remaining()) {
    cursor.refuse(fmt::format(
        "{} tensors and {} metadata entries do not fit the file", num_tensors, num_values));
  }
  read_metadata(cursor, num_values, header);
  for (std::uint64_t i = 0; i < num_tensors; ++i) {
    header.tensors.push_back(read_tensor(cursor));
  }
  place_tensors(cursor, file.size(), header);
  return header;
}

}  // namespace tandem::model
