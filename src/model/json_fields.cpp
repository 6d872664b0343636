#include "model/json_fields.h"

#include <cmath>
#include <set>

#include "base/error.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

using nlohmann::json;

std::string value_text(const json& value) {
  return in_quotes(value.dump(-1, ' ', true, json::error_handler_t::replace));
}

}  // namespace

json parse_json_object(std::string_view text, const std::string& file_name) {
  // Deep nesting would overflow the stack of whatever walks the value; the last of two equal keys
  // would silently win.
  constexpr int kDeepest = 32;
  std::vector<std::set<std::string>> keys_at_depth(kDeepest + 2);
  const auto check = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kDeepest) {
      fail<UserError>("{}: JSON nested deeper than {}; fetch the file again", file_name, kDeepest);
    }
    const auto place = static_cast<std::size_t>(depth);
    if (event == json::parse_event_t::object_start) {
      keys_at_depth[place + 1].clear();
    } else if (event == json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys_at_depth[place].insert(key).second) {
        fail<UserError>("{}: key {} stands twice; fetch the file again", file_name, in_quotes(key));
      }
    }
    return true;
  };
  json value;
  try {
    value = json::parse(text, check);
  } catch (const json::parse_error& error) {
    fail<UserError>(
        "{}: is not valid JSON at byte {}; fetch the file again", file_name, error.byte);
  } catch (const json::exception&) {  // a number beyond the range of double
    fail<UserError>("{}: is not valid JSON; fetch the file again", file_name);
  }
  if (!value.is_object()) {
    fail<UserError>("{}: holds no JSON object; fetch the file again", file_name);
  }
  return value;
}

const json* JsonFields::find(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::refuse(const std::string& key, const std::string& problem) const {
  const json* value = find(key);
  fail<UserError>("{}: field '{}{}' is {}; {}",
                  file_name_,
                  prefix_,
                  key,
                  value == nullptr ? "missing" : value_text(*value),
                  problem);
}

std::optional<bool> JsonFields::boolean(const std::string& key) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_boolean()) {
    refuse(key, "expected true or false");
  }
  return value->get<bool>();
}

std::optional<double> JsonFields::number(const std::string& key) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_number() || !std::isfinite(value->get<double>())) {
    refuse(key, "expected a finite number");
  }
  return value->get<double>();
}

std::optional<std::string> JsonFields::text(const std::string& key) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_string()) {
    refuse(key, "expected a string");
  }
  return value->get<std::string>();
}

std::optional<JsonFields> JsonFields::object(const std::string& key) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  if (!value->is_object()) {
    refuse(key, "expected an object");
  }
  return JsonFields(*value, file_name_, prefix_ + key + ".");
}

std::optional<std::vector<std::string>> JsonFields::texts(const std::string& key) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  std::vector<std::string> result;
  for (const json& entry : value->is_array() ? *value : json::array({nullptr})) {
    if (!entry.is_string()) {
      refuse(key, "expected a list of strings");
    }
    result.push_back(entry.get<std::string>());
  }
  return result;
}

std::optional<std::int64_t> JsonFields::size(const std::string& key, std::int64_t largest) const {
  const json* value = find(key);
  if (value == nullptr) {
    return std::nullopt;
  }
  const bool fits = value->is_number_unsigned() && value->get<std::uint64_t>() >= 1 &&
                    value->get<std::uint64_t>() <= static_cast<std::uint64_t>(largest);
  if (!fits) {
    refuse(key, fmt::format("expected an integer from 1 to {}", largest));
  }
  return value->get<std::int64_t>();
}

std::int64_t JsonFields::required_size(const std::string& key, std::int64_t largest) const {
  const auto value = size(key, largest);
  if (!value) {
    refuse(key, "this family needs it; fetch the complete file");
  }
  return *value;
}

std::vector<std::int64_t> JsonFields::integers(const std::string& key) const {
  const json* value = find(key);
  std::vector<std::int64_t> result;
  if (value == nullptr) {
    return result;
  }
  for (const json& entry : value->is_array() ? *value : json::array({*value})) {
    if (!entry.is_number_integer()) {
      refuse(key, "expected an integer or a list of integers");
    }
    result.push_back(entry.get<std::int64_t>());
  }
  return result;
}

}  // namespace tandem::model
