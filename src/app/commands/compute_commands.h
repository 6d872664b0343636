// The commands that load a model: each sets up its options and what it does.
#pragma once

#include "app/cli.h"

namespace tandem::app {

void set_up_generate(CommandLine& line);
void set_up_score(CommandLine& line);
void set_up_inspect(CommandLine& line);
void set_up_convert(CommandLine& line);
void set_up_make_data(CommandLine& line);
void set_up_bench(CommandLine& line);
void set_up_train(CommandLine& line);
void set_up_sft(CommandLine& line);
void set_up_eval(CommandLine& line);

}  // namespace tandem::app
