#include "app/command_table.h"

#include <array>

#include "app/commands.h"
#include "app/commands/compute_commands.h"

namespace tandem::app {
namespace {

constexpr std::array kCommands = {
    Command{"train", "RL training from a recipe", set_up_train},
    Command{"sft", "supervised warm-up from a recipe", set_up_sft},
    Command{"eval", "scores a model on a recipe's validation data", set_up_eval},
    Command{"generate", "samples completions of prompts", set_up_generate},
    Command{"score", "log-probabilities and entropies of given ids", set_up_score},
    Command{"tokenize", "text to token ids, or back", set_up_tokenize},
    Command{"render", "a chat template's text or ids", set_up_render},
    Command{"reward", "runs reward functions over completions", set_up_reward},
    Command{"inspect", "what a model is and what it takes", set_up_inspect},
    Command{"convert", "GGUF or Hugging Face to Hugging Face", set_up_convert},
    Command{"make-data", "writes the questions of a built-in task", set_up_make_data},
    Command{"report", "a run's page, report.html", set_up_report},
    Command{"bench", "the project's benchmarks on a model", set_up_bench},
};

}  // namespace

std::span<const Command> all_commands() {
  return kCommands;
}

}  // namespace tandem::app
