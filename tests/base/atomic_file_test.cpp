#include "base/atomic_file.h"

#include <filesystem>
#include <fstream>

#include <doctest/doctest.h>

#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a file is replaced whole, and read back") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "a", "one");
  write_file_atomic(folder / "a", "two");
  CHECK(read_file(folder / "a") == "two");
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a missing, a too large file and a folder are user errors that name them") {
  const test::TemporaryFolder folder;
  write_file_atomic(folder / "a", "12345");
  CHECK_THROWS_AS(read_file(folder / "missing"), UserError);
  CHECK_THROWS_AS(read_file(folder / "a", 4), UserError);
  CHECK_THROWS_AS(read_file(folder.path()), UserError);
}

TEST_CASE("a folder appears only when it is filled; a failure leaves the old one") {
  const test::TemporaryFolder folder;
  const fs::path target = folder / "out";
  write_folder_atomic(target, [](const fs::path& p) { std::ofstream(p / "x") << "1"; });
  CHECK_THROWS(write_folder_atomic(target, [](const fs::path& p) {
    std::ofstream(p / "x") << "2";
    fail("stopped half-way");
  }));
  CHECK(read_file(target / "x") == "1");
  write_folder_atomic(target, [](const fs::path& p) { std::ofstream(p / "y") << "3"; });
  CHECK_FALSE(fs::exists(target / "x"));
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("what a killed writer left is removed") {
  const test::TemporaryFolder folder;
  fs::create_directories(folder / ".tmp-out-1");
  write_file_atomic(folder / "kept", "");
  remove_leftovers(folder.path());
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a folder that cannot be written is a machine error") {
  CHECK_THROWS_AS(write_file_atomic("/proc/no/such", "x"), MachineError);
}

}  // namespace
}  // namespace tandem
