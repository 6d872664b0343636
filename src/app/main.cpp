// The program `tandem`.
//
// Nothing here or in a global object may start a thread: reward workers are forked first.
#include "app/command_table.h"
#include "app/console.h"

int main(int argc, char** argv) {
  tandem::app::log_to_console();
  return tandem::app::run_command_line(tandem::app::all_commands(), {argv + 1, argv + argc});
}
