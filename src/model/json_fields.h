// Fields of a JSON file that a user gave: every error names file, field and what was expected.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace tandem::model {

/// Parses a JSON object whose keys are all different and whose nesting is shallow.
///
/// Throws UserError naming `file_name` and the byte where it goes wrong.
nlohmann::json parse_json_object(std::string_view text, const std::string& file_name);

/// Reads the fields of one object. A null field counts as absent throughout.
///
/// Holds a reference: the object must outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string file_name, std::string prefix = "")
      : object_(object), file_name_(std::move(file_name)), prefix_(std::move(prefix)) {}

  [[nodiscard]] bool has(const std::string& key) const { return find(key) != nullptr; }
  [[nodiscard]] std::optional<bool> boolean(const std::string& key) const;
  [[nodiscard]] std::optional<double> number(const std::string& key) const;
  [[nodiscard]] std::optional<std::string> text(const std::string& key) const;
  [[nodiscard]] std::optional<JsonFields> object(const std::string& key) const;
  [[nodiscard]] std::optional<std::vector<std::string>> texts(const std::string& key) const;

  /// An integer in [1, largest].
  [[nodiscard]] std::optional<std::int64_t> size(const std::string& key,
                                                 std::int64_t largest) const;
  [[nodiscard]] std::int64_t required_size(const std::string& key, std::int64_t largest) const;

  /// One integer or a list of them.
  [[nodiscard]] std::vector<std::int64_t> integers(const std::string& key) const;

  /// Throws UserError: file, field, its value, then `problem`.
  [[noreturn]] void refuse(const std::string& key, const std::string& problem) const;

  [[nodiscard]] const std::string& file_name() const { return file_name_; }

 private:
  [[nodiscard]] const nlohmann::json* find(const std::string& key) const;

  const nlohmann::json& object_;  // not owned
  std::string file_name_;
  std::string prefix_;  // "rope_scaling." inside a nested object
};

}  // namespace tandem::model
