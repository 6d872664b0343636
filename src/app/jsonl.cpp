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
