#include "data/jsonl_reader.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::data {
namespace {

std::string error_of(const std::string& text) {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "x.jsonl", text);
  try {
    JsonlReader reader((folder / "x.jsonl").string());
    while (reader.next()) {
    }
  } catch (const UserError& e) {
    const std::string what = e.what();
    return what.substr(what.find("x.jsonl"));
  }
  return "no error";
}

TEST_CASE("a byte-order mark, carriage returns, blank lines and a missing last end are read") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "x.jsonl", "\xEF\xBB\xBF{\"a\": 1}\r\n\r\n  \n{\"a\": 2}");
  JsonlReader reader((folder / "x.jsonl").string());
  CHECK((*reader.next())["a"] == 1);
  CHECK(reader.place().ends_with("x.jsonl:1"));
  CHECK((*reader.next())["a"] == 2);
  CHECK(reader.place().ends_with("x.jsonl:4"));
  CHECK_FALSE(reader.next());
}

TEST_CASE("a broken line is named with file and line") {
  CHECK(error_of("{}\n{}\n{\"a\": }\n").starts_with("x.jsonl:3: is not valid JSON: "));
  CHECK(error_of("{}\n[1]\n") ==
        "x.jsonl:2: a JSON object was expected, not array; write one {...} a line");
  CHECK(error_of("\x01\x02garbage\xff\n").starts_with("x.jsonl:1: is not valid JSON: "));
  CHECK(error_of("{\"a\": \"cut").starts_with("x.jsonl:1: "));
  CHECK(error_of("") == "no error");
}

TEST_CASE("whoever needs rows is told of a file without any") {
  const test::TemporaryFolder folder;
  for (const std::string text : {"", "\n \n", "{}\n"}) {
    write_file_atomic(folder / "x.jsonl", text);
    JsonlReader reader((folder / "x.jsonl").string());
    while (reader.next()) {
    }
    if (text == "{}\n") {
      CHECK_NOTHROW(reader.need_rows());
    } else {
      CHECK_THROWS_AS(reader.need_rows(), UserError);
    }
  }
}

TEST_CASE("a missing file and a folder are user errors") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(JsonlReader("no/such.jsonl"), UserError);
  CHECK_THROWS_AS(JsonlReader(folder.path().string()), UserError);
}

}  // namespace
}  // namespace tandem::data
