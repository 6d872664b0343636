// The program `tandem`.
//
// Nothing here or in a global object may start a thread: reward workers are forked first.
#include <array>

#include "app/commands.h"
#include "app/commands/compute_commands.h"
#include "app/console.h"

namespace {

using tandem::app::Command;

constexpr std::array kCommands = {
    Command{"train", "RL training from a recipe", tandem::app::set_up_train},
    Command{"sft", "supervised warm-up from a recipe", tandem::app::set_up_sft},
    Command{"eval", "scores a model on a recipe's validation data", tandem::app::set_up_eval},
    Command{"generate", "samples completions of prompts", tandem::app::set_up_generate},
    Command{"score", "log-probabilities and entropies of given ids", tandem::app::set_up_score},
    Command{"tokenize", "text to token ids, or back", tandem::app::set_up_tokenize},
    Command{"render", "a chat template's text or ids", tandem::app::set_up_render},
    Command{"reward", "runs reward functions over completions", tandem::app::set_up_reward},
    Command{"inspect", "what a model is and what it takes", tandem::app::set_up_inspect},
    Command{"convert", "GGUF or Hugging Face to Hugging Face", tandem::app::set_up_convert},
    Command{"make-data", "writes the questions of a built-in task", tandem::app::set_up_make_data},
    Command{"report", "a run's page, report.html", tandem::app::set_up_report},
    Command{"bench", "the project's benchmarks on a model", tandem::app::set_up_bench},
};

}  // namespace

int main(int argc, char** argv) {
  tandem::app::log_to_console();
  return tandem::app::run_command_line(kCommands, {argv + 1, argv + argc});
}
