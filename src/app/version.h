// What this build is: version, commit, compiler.
#pragma once

#include <string>

namespace tandem::app {

/// "tandem 0.1.0 (commit, compiler)".
std::string version_text();

/// "0.1.0".
std::string version_number();

/// The commit that was built, or "unknown" outside a checkout.
std::string version_commit();

}  // namespace tandem::app
