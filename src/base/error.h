// The exceptions of the project and TANDEM_CHECK, which throws them.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace tandem {

/// A broken contract, or work that failed after it was started. Exit status 1.
///
/// The text is one line without a full stop: where (file:line, key, sample, rank), what, and the
/// remedy where there is one.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Something that the user gave is wrong: option, recipe, model, data, reward file. Exit status 2.
class UserError : public Error {
 public:
  using Error::Error;
};

/// The machine lacks memory, disk, a library or a permission. Exit status 3.
class MachineError : public Error {
 public:
  using Error::Error;
};

template <class E = Error, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw E(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tandem

/// Throws tandem::Error with the formatted text when `condition` is false.
#define TANDEM_CHECK(condition, ...) \
  do {                               \
    if (!(condition)) {              \
      ::tandem::fail<>(__VA_ARGS__); \
    }                                \
  } while (false)
