// The set-up function of each command; command_table.cpp has the table.
#pragma once

#include "app/cli.h"

namespace tandem::app {

void set_up_render(CommandLine& line);
void set_up_report(CommandLine& line);
void set_up_reward(CommandLine& line);
void set_up_tokenize(CommandLine& line);

}  // namespace tandem::app
