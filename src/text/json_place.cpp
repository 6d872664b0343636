#include "text/json_place.h"

#include <algorithm>

namespace tandem::text {

nlohmann::json parse_json(std::string_view content, const std::string& name) {
  try {
    return nlohmann::json::parse(content);
  } catch (const nlohmann::json::parse_error& error) {
    // The library's own text may quote megabytes of an unterminated string; the place is enough.
    const std::size_t at = std::min(error.byte == 0 ? 0 : error.byte - 1, content.size());
    const std::string_view before = content.substr(0, at);
    const auto line = std::count(before.begin(), before.end(), '\n') + 1;
    const std::size_t start = before.rfind('\n') + 1;  // npos + 1 is 0
    const bool ended = at + 1 >= content.size();
    fail<UserError>("{}:{}:{}: not valid JSON: {}",
                    name,
                    line,
                    at - start + 1,
                    content.empty() ? "it is empty"
                    : ended         ? "it ends early"
                                    : "syntax error");
  } catch (const nlohmann::json::exception&) {
    fail<UserError>("{}: not valid JSON: a number is out of range", name);
  }
}

bool JsonPlace::has(const std::string& key) const {
  return value_->is_object() && value_->contains(key) && !(*value_)[key].is_null();
}

JsonPlace JsonPlace::at(const std::string& key) const {
  if (!value_->is_object()) {
    refuse("is {}, not an object", value_->type_name());
  }
  const auto found = value_->find(key);
  if (found == value_->end()) {
    refuse("lacks \"{}\"", key);
  }
  return {*found, where_ + (where_.find(": ") == std::string::npos ? ": " : ".") + key};
}

JsonPlace JsonPlace::at(std::size_t index) const {
  if (index >= array_size()) {
    refuse("has {} entries, entry {} is wanted", value_->size(), index);
  }
  return {(*value_)[index], fmt::format("{}[{}]", where_, index)};
}

std::size_t JsonPlace::array_size() const {
  if (!value_->is_array()) {
    refuse("is {}, not an array", value_->type_name());
  }
  return value_->size();
}

const std::string& JsonPlace::string() const {
  if (!value_->is_string()) {
    refuse("is {}, not a string", value_->type_name());
  }
  return value_->get_ref<const std::string&>();
}

std::int64_t JsonPlace::integer() const {
  if (!value_->is_number_integer()) {
    refuse("is {}, not an integer", value_->is_number() ? "a fraction" : value_->type_name());
  }
  return value_->get<std::int64_t>();
}

bool JsonPlace::boolean() const {
  if (!value_->is_boolean()) {
    refuse("is {}, not a boolean", value_->type_name());
  }
  return value_->get<bool>();
}

bool JsonPlace::flag(const std::string& key, bool otherwise) const {
  return has(key) ? at(key).boolean() : otherwise;
}

std::string JsonPlace::string_or(const std::string& key, const std::string& otherwise) const {
  return has(key) ? at(key).string() : otherwise;
}

std::int64_t JsonPlace::integer_or(const std::string& key, std::int64_t otherwise) const {
  return has(key) ? at(key).integer() : otherwise;
}

}  // namespace tandem::text
