// Where the large test data is: `../shared/data` beside the checkout, or TANDEM_SHARED_DATA.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace tandem::test {

/// The folder of large test data, or an empty path where it is not there.
inline std::filesystem::path shared_data() {
  if (const char* dir = std::getenv("TANDEM_SHARED_DATA")) {
    return dir;
  }
  const std::filesystem::path beside = "../shared/data";  // tests run in the project's root
  return std::filesystem::exists(beside) ? beside : std::filesystem::path();
}

}  // namespace tandem::test

/// Ends the test case, saying so, where a file of the shared data is missing.
#define TANDEM_NEEDS_SHARED(path)                                                 \
  if (!std::filesystem::exists(::tandem::test::shared_data() / (path))) {         \
    MESSAGE("skipped: no " << (::tandem::test::shared_data() / (path)).string()); \
    return;                                                                       \
  }
