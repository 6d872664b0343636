// JSON lines in and out of the program: files of token ids, and what a command printed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "support/program.h"

namespace tandem::test {

using Ids = std::vector<std::int32_t>;
using Words = std::vector<std::string>;

/// A file for `--ids`: one sequence a line.
inline std::string write_ids(const std::filesystem::path& file, const std::vector<Ids>& rows) {
  std::string text;
  for (const Ids& ids : rows) {
    text += nlohmann::json({{"ids", ids}}).dump() + "\n";
  }
  write_file_atomic(file, text);
  return file.string();
}

inline std::vector<nlohmann::json> parse_rows(const std::string& text) {
  std::vector<nlohmann::json> rows;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    rows.push_back(nlohmann::json::parse(line));
  }
  return rows;
}

/// What the program prints, one object a line; the test case ends when it fails.
inline std::vector<nlohmann::json> rows_of(const Words& words) {
  const auto result = run_program(words);
  REQUIRE_MESSAGE(result.status == 0, result.err);
  return parse_rows(result.out);
}

}  // namespace tandem::test
