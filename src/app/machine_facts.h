// What a record says about where it came from: the processor and the command.
#pragma once

#include <string>

namespace tandem::app {

/// The processor's model name, or "unknown".
std::string cpu_name();

/// The words that this process was started with; quoted where a shell would need it.
std::string command_line();

}  // namespace tandem::app
