#include "app/tensorboard_records.h"

#include <array>
#include <bit>
#include <optional>

namespace tandem::app {
namespace {

// Protobuf wire types (the low three bits of a field's key).
constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBytes = 2;
constexpr unsigned kFixed32 = 5;

constexpr std::size_t kHeaderBytes = 12;  // length and its checksum
constexpr std::size_t kFooterBytes = 4;

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReversedPolynomial : 0);
    }
    table[i] = crc;
  }
  return table;
}

template <class Number>
void put_little_endian(std::string& out, Number value) {
  for (std::size_t i = 0; i < sizeof value; ++i) {
    out += static_cast<char>(value >> (8 * i) & 0xff);
  }
}

template <class Number>
Number get_little_endian(std::string_view bytes) {
  Number value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value |= static_cast<Number>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) {
    out += static_cast<char>((value & 0x7f) | 0x80);
  }
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, unsigned wire_type) {
  put_varint(out, field << 3 | wire_type);
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_key(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string start_event(double wall_time) {
  std::string event;
  put_key(event, 1, kFixed64);
  put_little_endian(event, std::bit_cast<std::uint64_t>(wall_time));
  return event;
}

// Takes a varint from the front of `bytes`.
std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      return value;
    }
  }
  return std::nullopt;
}

// Bytes that a field's value takes after its key (and, for kBytes, after its length).
std::optional<std::uint64_t> value_size(unsigned wire_type, std::string_view& bytes) {
  switch (wire_type) {
    case kFixed64:
      return 8;
    case kFixed32:
      return 4;
    case kBytes:
      return take_varint(bytes);
    default:
      return std::nullopt;
  }
}

}  // namespace

std::uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return std::rotr(~crc, 15) + 0xa282ead8;
}

std::string frame_record(std::string_view data) {
  std::string record;
  record.reserve(kHeaderBytes + data.size() + kFooterBytes);
  put_little_endian(record, static_cast<std::uint64_t>(data.size()));
  put_little_endian(record, masked_crc32c(record));
  record += data;
  put_little_endian(record, masked_crc32c(data));
  return record;
}

RecordScan scan_records(std::string_view bytes) {
  RecordScan scan;
  while (scan.whole_bytes < bytes.size()) {
    const auto rest = bytes.substr(scan.whole_bytes);
    if (rest.size() < kHeaderBytes) {
      scan.end = RecordScan::End::kCutShort;
      return scan;
    }
    if (get_little_endian<std::uint32_t>(rest.substr(8)) != masked_crc32c(rest.substr(0, 8))) {
      scan.end = RecordScan::End::kDamaged;
      return scan;
    }
    const auto size = get_little_endian<std::uint64_t>(rest);
    if (size > rest.size() || rest.size() - size < kHeaderBytes + kFooterBytes) {
      scan.end = RecordScan::End::kCutShort;
      return scan;
    }
    const auto data = rest.substr(kHeaderBytes, size);
    if (get_little_endian<std::uint32_t>(rest.substr(kHeaderBytes + size)) != masked_crc32c(data)) {
      scan.end = RecordScan::End::kDamaged;
      return scan;
    }
    scan.records.push_back(data);
    scan.whole_bytes += kHeaderBytes + size + kFooterBytes;
  }
  return scan;
}

std::string encode_scalar_event(std::int64_t step,
                                double wall_time,
                                std::string_view tag,
                                float value) {
  std::string scalar;
  put_bytes(scalar, 1, tag);
  put_key(scalar, 2, kFixed32);
  put_little_endian(scalar, std::bit_cast<std::uint32_t>(value));
  std::string summary;
  put_bytes(summary, 1, scalar);

  std::string event = start_event(wall_time);
  if (step != 0) {
    put_key(event, 2, kVarint);
    put_varint(event, static_cast<std::uint64_t>(step));
  }
  put_bytes(event, 5, summary);
  return event;
}

std::string encode_version_event(double wall_time) {
  std::string source;
  put_bytes(source, 1, "tandem");
  std::string event = start_event(wall_time);
  put_bytes(event, 3, "brain.Event:2");
  put_bytes(event, 10, source);
  return event;
}

std::int64_t step_of_event(std::string_view event) {
  while (!event.empty()) {
    const auto key = take_varint(event);
    if (!key) {
      return 0;
    }
    const auto wire_type = static_cast<unsigned>(*key & 7);
    if (wire_type == kVarint) {
      const auto value = take_varint(event);
      if (*key >> 3 == 2 || !value) {
        return static_cast<std::int64_t>(value.value_or(0));
      }
      continue;
    }
    const auto size = value_size(wire_type, event);
    if (!size || *size > event.size()) {
      return 0;
    }
    event.remove_prefix(*size);
  }
  return 0;
}

}  // namespace tandem::app
