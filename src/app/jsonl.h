// JSON lines in and out: "-" is standard input or output, numbers read back as the same bits.
#pragma once

#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#include "data/jsonl_reader.h"

namespace tandem::app {

/// The shortest text that reads back as the same bits; what is not finite becomes one of the texts
/// "NaN", "Infinity", "-Infinity", quotes included.
std::string json_number(double value);
std::string json_number(float value);

/// `text` as a JSON text, quotes included. Broken UTF-8 becomes U+FFFD.
std::string json_text(std::string_view text);

/// Builds one JSON object, keys in the order given.
class JsonObject {
 public:
  JsonObject& add(std::string_view key, std::string_view text);
  JsonObject& add(std::string_view key, const char* text) {
    return add(key, std::string_view(text));
  }
  JsonObject& add(std::string_view key, std::int64_t value);
  JsonObject& add(std::string_view key, int value) { return add(key, std::int64_t{value}); }
  JsonObject& add(std::string_view key, double value);
  JsonObject& add(std::string_view key, float value);
  JsonObject& add(std::string_view key, bool value);
  JsonObject& add(std::string_view key, std::span<const std::int32_t> values);
  JsonObject& add(std::string_view key, std::span<const float> values);
  JsonObject& add(std::string_view key, std::span<const double> values);

  /// A value that is JSON already.
  JsonObject& add_json(std::string_view key, std::string_view json);

  [[nodiscard]] bool empty() const { return body_.empty(); }

  /// The object on one line, without a line's end.
  [[nodiscard]] std::string str() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

using data::JsonlReader;

/// Writes lines to a file, or to standard output for "-" and "".
class LineWriter {
 public:
  /// Throws MachineError when `file` cannot be written.
  explicit LineWriter(const std::string& file);

  /// Adds one line and its end.
  void write(std::string_view line);

  /// Throws MachineError when anything was not written: a full disk, a closed pipe.
  void finish();

 private:
  std::string name_;
  std::ofstream file_;
  std::ostream* out_;
};

}  // namespace tandem::app
