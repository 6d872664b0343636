// The table of all commands.
#pragma once

#include <span>

#include "app/cli.h"

namespace tandem::app {

/// In the order in which the usage lists them.
std::span<const Command> all_commands();

}  // namespace tandem::app
