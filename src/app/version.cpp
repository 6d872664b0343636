#include "app/version.h"

#include <fmt/format.h>

namespace tandem::app {

std::string version_text() {
  return fmt::format("tandem {} ({}, g++ {})", version_number(), version_commit(), __VERSION__);
}

std::string version_number() {
  return TANDEM_VERSION;
}

std::string version_commit() {
  return TANDEM_COMMIT;
}

}  // namespace tandem::app
