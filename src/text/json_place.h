// Reading JSON with errors that name the file and the place: "tokenizer.json: model.vocab: ...".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::text {

/// Parses `content`; throws UserError "NAME:LINE:COLUMN: ..." where it is not JSON.
nlohmann::json parse_json(std::string_view content, const std::string& name);

/// A JSON value together with where it stands. Refers to the value, which must outlive it.
class JsonPlace {
 public:
  JsonPlace(const nlohmann::json& value, std::string where)
      : value_(&value), where_(std::move(where)) {}

  [[nodiscard]] const nlohmann::json& value() const { return *value_; }
  [[nodiscard]] const std::string& where() const { return where_; }

  /// Whether the object has the key with a value other than null.
  [[nodiscard]] bool has(const std::string& key) const;

  /// The member; throws where this is no object or lacks the key.
  [[nodiscard]] JsonPlace at(const std::string& key) const;
  [[nodiscard]] JsonPlace at(std::size_t index) const;

  /// The number of entries of an array; throws where this is none.
  [[nodiscard]] std::size_t array_size() const;

  [[nodiscard]] const std::string& string() const;
  [[nodiscard]] std::int64_t integer() const;
  [[nodiscard]] bool boolean() const;

  /// Members with a default for an absent or null one.
  [[nodiscard]] bool flag(const std::string& key, bool otherwise) const;
  [[nodiscard]] std::string string_or(const std::string& key, const std::string& otherwise) const;
  [[nodiscard]] std::int64_t integer_or(const std::string& key, std::int64_t otherwise) const;

  /// Throws UserError "WHERE: MESSAGE".
  template <class... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail<UserError>("{}: {}", where_, fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  const nlohmann::json* value_;
  std::string where_;
};

}  // namespace tandem::text
