#include "data/jsonl_reader.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace tandem::data {
namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{256} << 20;

// nlohmann's text without its "[json.exception.parse_error.101] parse error at line 1, column 5: ".
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string text = error.what();
  const std::size_t at = text.find("column ");
  const std::size_t colon = text.find(": ", at == std::string::npos ? 0 : at);
  return colon == std::string::npos ? text : text.substr(colon + 2);
}

}  // namespace

JsonlReader::JsonlReader(const std::string& file)
    : name_(file == "-" ? "standard input" : file), in_(&std::cin) {
  if (file == "-") {
    return;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored)) {
    fail<UserError>("{}: is a folder; give a JSONL file", file);
  }
  file_.open(file, std::ios::binary);
  if (!file_) {
    fail<UserError>("{}: cannot be read: {}", file, std::strerror(errno));
  }
  in_ = &file_;
}

bool JsonlReader::read_line(std::string& text) {
  text.clear();
  std::streambuf& buffer = *in_->rdbuf();
  for (int c = buffer.sbumpc(); c != '\n'; c = buffer.sbumpc()) {
    if (c == std::char_traits<char>::eof()) {
      return !text.empty();
    }
    if (text.size() >= kMaxLineBytes) {
      fail<UserError>(
          "{}:{}: is longer than {} bytes; leave the row out", name_, line_ + 1, kMaxLineBytes);
    }
    text.push_back(static_cast<char>(c));
  }
  return true;
}

std::optional<nlohmann::json> JsonlReader::next() {
  return next_object<nlohmann::json>();
}

std::optional<nlohmann::ordered_json> JsonlReader::next_ordered() {
  return next_object<nlohmann::ordered_json>();
}

template <class Json>
std::optional<Json> JsonlReader::next_object() {
  for (std::string text; read_line(text);) {
    ++line_;
    if (line_ == 1 && text.starts_with("\xEF\xBB\xBF")) {
      text.erase(0, 3);
    }
    if (text.find_first_not_of(" \t\r") == std::string::npos) {
      continue;
    }
    Json value;
    try {
      value = Json::parse(text);
    } catch (const nlohmann::json::parse_error& e) {
      fail<UserError>(
          "{}: is not valid JSON: {}; write one whole JSON object a line", place(), reason_of(e));
    }
    if (!value.is_object()) {
      fail<UserError>("{}: a JSON object was expected, not {}; write one {{...}} a line",
                      place(),
                      value.type_name());
    }
    ++num_rows_;
    return value;
  }
  return std::nullopt;
}

void JsonlReader::need_rows() const {
  if (num_rows_ == 0) {
    fail<UserError>("{}: has no rows; write one JSON object a line", name_);
  }
}

std::string JsonlReader::place() const {
  return fmt::format("{}:{}", name_, line_);
}

}  // namespace tandem::data
