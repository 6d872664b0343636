// The program `tandem`.
//
// Nothing here or in a global object may start a thread: reward workers are forked first.
#include <array>

#include "app/commands.h"
#include "app/console.h"

namespace {

using tandem::app::Command;

constexpr std::array kCommands = {
    Command{"tokenize", "text to token ids, or back", tandem::app::set_up_tokenize},
};

}  // namespace

int main(int argc, char** argv) {
  tandem::app::log_to_console();
  return tandem::app::run_command_line(kCommands, {argv + 1, argv + argc});
}
