// The framing of TensorBoard's event files: each record is length, checksum, data, checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::app {

/// CRC-32C (Castagnoli) of `bytes`, rotated right by 15 and shifted by a constant, as the TFRecord
/// format stores it.
std::uint32_t masked_crc32c(std::string_view bytes);

/// `data` as one record: its length as 8 bytes, their checksum, the data, its checksum; all numbers
/// little-endian.
std::string frame_record(std::string_view data);

/// What an event file holds up to its end or its first damage.
struct RecordScan {
  enum class End { kWhole, kCutShort, kDamaged };

  std::vector<std::string_view> records;  // the data of each; views of the scanned bytes
  std::size_t whole_bytes = 0;            // size of those records with their framing
  End end = End::kWhole;                  // cut short: the last record is not complete
};
RecordScan scan_records(std::string_view bytes);

/// An Event message with one scalar, fields in the order wall_time, step (absent when 0), summary.
/// `wall_time` in seconds since 1970.
std::string encode_scalar_event(std::int64_t step,
                                double wall_time,
                                std::string_view tag,
                                float value);

/// The Event message that opens every file: the format's version and who wrote it.
std::string encode_version_event(double wall_time);

/// The `step` field of an Event message; 0 where it has none.
std::int64_t step_of_event(std::string_view event);

}  // namespace tandem::app
