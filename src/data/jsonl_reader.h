// JSON lines, one object a line, with the place of each for errors.
#pragma once

#include <cstdint>
#include <fstream>
#include <iosfwd>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace tandem::data {

/// Reads objects one a line; blank lines, a byte-order mark and carriage returns are skipped.
class JsonlReader {
 public:
  /// "-" is standard input. Throws UserError when `file` cannot be read.
  explicit JsonlReader(const std::string& file);

  /// The next object, or nothing at the end. Throws UserError `FILE:LINE: ...` for a broken line,
  /// one that is no object, and one longer than 256 MiB.
  std::optional<nlohmann::json> next();

  /// As `next`, with the keys in the line's order: chat templates print tools as they are.
  std::optional<nlohmann::ordered_json> next_ordered();

  /// Throws UserError when no object was found: a file without rows is a mistake.
  void need_rows() const;

  /// "FILE:LINE" of the object that `next` returned last.
  [[nodiscard]] std::string place() const;

 private:
  [[nodiscard]] bool read_line(std::string& text);
  template <class Json>
  std::optional<Json> next_object();

  std::string name_;
  std::ifstream file_;
  std::istream* in_;  // file_ or standard input
  std::int64_t line_ = 0;
  std::int64_t num_rows_ = 0;  // objects returned
};

}  // namespace tandem::data
