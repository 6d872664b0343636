#include "app/jsonl.h"

#include <cmath>
#include <cstring>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::app {
namespace {

template <class Number>
std::string number_or_word(Number value) {
  if (std::isnan(value)) {
    return "\"NaN\"";
  }
  if (std::isinf(value)) {
    return value > 0 ? "\"Infinity\"" : "\"-Infinity\"";
  }
  return fmt::format("{}", value);
}

template <class Number>
std::string list_of(std::span<const Number> values) {
  std::string text = "[";
  for (const Number value : values) {
    text += text.size() > 1 ? ", " : "";
    if constexpr (std::is_integral_v<Number>) {
      text += std::to_string(value);
    } else {
      text += json_number(value);
    }
  }
  return text + "]";
}

// nlohmann's text without its "[json.exception.parse_error.101] parse error at line 1, column 5: ".
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string text = error.what();
  const std::size_t at = text.find("column ");
  const std::size_t colon = text.find(": ", at == std::string::npos ? 0 : at);
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace

std::string json_number(double value) {
  return number_or_word(value);
}

std::string json_number(float value) {
  return number_or_word(value);
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

JsonObject& JsonObject::add(std::string_view key, std::string_view text) {
  return add_json(key, json_text(text));
}

JsonObject& JsonObject::add(std::string_view key, std::int64_t value) {
  return add_json(key, std::to_string(value));
}

JsonObject& JsonObject::add(std::string_view key, double value) {
  return add_json(key, json_number(value));
}

JsonObject& JsonObject::add(std::string_view key, float value) {
  return add_json(key, json_number(value));
}

JsonObject& JsonObject::add(std::string_view key, bool value) {
  return add_json(key, value ? "true" : "false");
}

JsonObject& JsonObject::add(std::string_view key, std::span<const std::int32_t> values) {
  return add_json(key, list_of(values));
}

JsonObject& JsonObject::add(std::string_view key, std::span<const float> values) {
  return add_json(key, list_of(values));
}

JsonObject& JsonObject::add(std::string_view key, std::span<const double> values) {
  return add_json(key, list_of(values));
}

JsonObject& JsonObject::add_json(std::string_view key, std::string_view json) {
  body_ += body_.empty() ? "" : ", ";
  body_ += json_text(key);
  body_ += ": ";
  body_ += json;
  return *this;
}

JsonlReader::JsonlReader(const std::string& file)
    : name_(file == "-" ? "standard input" : file), in_(&std::cin) {
  if (file == "-") {
    return;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    fail<UserError>("{}: is a folder, a JSONL file was expected", file);
  }
  file_.open(file, std::ios::binary);
  if (!file_) {
    fail<UserError>("{}: cannot be read: {}", file, std::strerror(errno));
  }
  in_ = &file_;
}

std::optional<nlohmann::json> JsonlReader::next() {
  for (std::string text; std::getline(*in_, text);) {
    ++line_;
    if (line_ == 1 && text.starts_with("\xEF\xBB\xBF")) {
      text.erase(0, 3);
    }
    if (text.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    nlohmann::json value;
    try {
      value = nlohmann::json::parse(text);
    } catch (const nlohmann::json::parse_error& e) {
      fail<UserError>("{}: is not valid JSON: {}", place(), reason_of(e));
    }
    if (!value.is_object()) {
      fail<UserError>("{}: a JSON object was expected, not {}", place(), value.type_name());
    }
    return value;
  }
  if (in_->bad()) {
    fail<UserError>("{}: cannot be read: {}", name_, std::strerror(errno));
  }
  return std::nullopt;
}

std::string JsonlReader::place() const {
  return fmt::format("{}:{}", name_, line_);
}

LineWriter::LineWriter(const std::string& file) : name_(file), out_(&std::cout) {
  if (file == "-" || file.empty()) {
    name_ = "standard output";
    return;
  }
  file_.open(file, std::ios::binary | std::ios::trunc);
  if (!file_) {
    fail<MachineError>("{}: cannot be written: {}", file, std::strerror(errno));
  }
  out_ = &file_;
}

void LineWriter::write(std::string_view line) {
  *out_ << line << '\n';
  if (!*out_) {
    fail<MachineError>("{}: cannot be written: {}", name_, std::strerror(errno));
  }
}

void LineWriter::finish() {
  out_->flush();
  if (!*out_) {
    fail<MachineError>("{}: cannot be written: {}", name_, std::strerror(errno));
  }
}

}  // namespace tandem::app
