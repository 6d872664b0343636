// JSON lines in and out: "-" is standard input or output, numbers read back as the same bits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

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

/// Reads objects one a line; blank lines, a byte-order mark and carriage returns are skipped.
class JsonlReader {
 public:
  /// Throws UserError when `file` cannot be read.
  explicit JsonlReader(const std::string& file);

  /// The next object, or nothing at the end. Throws UserError `FILE:LINE: ...` for a broken line or
  /// one that is no object.
  std::optional<nlohmann::json> next();

  /// "FILE:LINE" of the object that `next` returned last.
  [[nodiscard]] std::string place() const;

 private:
  std::string name_;
  std::ifstream file_;
  std::istream* in_;  // file_ or standard input
  std::int64_t line_ = 0;
};

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
