// tandem make-data: the questions of the recipes' tasks.
#include <memory>

#include <fmt/format.h>

#include "app/commands/compute_commands.h"
#include "app/jsonl.h"
#include "app/make_arithmetic.h"
#include "app/make_sequence.h"
#include "base/error.h"

namespace tandem::app {
namespace {

struct MakeDataOptions {
  std::string task, train, validation, demonstrations;
  std::int64_t seed = 0;
};

void make_arithmetic_data(const MakeDataOptions& options, LineWriter& out) {
  if (!options.demonstrations.empty()) {
    fail<UserError>("--demonstrations: arithmetic has none; leave it out");
  }
  const auto made =
      make_arithmetic(options.train, options.validation, static_cast<std::uint64_t>(options.seed));
  out.write(fmt::format("{}: {} questions", options.train, made.num_train));
  out.write(fmt::format("{}: {} questions", options.validation, made.num_validation));
}

void make_sequence_data(const MakeDataOptions& options, LineWriter& out) {
  if (options.demonstrations.empty()) {
    fail<UserError>("--demonstrations is missing: sequence writes rows for a warm-up too");
  }
  const auto made = make_sequence({options.train, options.validation, options.demonstrations},
                                  static_cast<std::uint64_t>(options.seed));
  out.write(fmt::format("{}: {} questions", options.train, made.num_train));
  out.write(fmt::format("{}: {} questions", options.validation, made.num_validation));
  out.write(fmt::format("{}: {} demonstrations", options.demonstrations, made.num_demonstrations));
}

int run_make_data(const MakeDataOptions& options) {
  LineWriter out("-");
  if (options.task == "arithmetic") {
    make_arithmetic_data(options, out);
  } else if (options.task == "sequence") {
    make_sequence_data(options, out);
  } else {
    fail<UserError>("make-data: unknown task '{}'; there are: arithmetic, sequence", options.task);
  }
  out.finish();
  return 0;
}

}  // namespace

void set_up_make_data(CommandLine& line) {
  const auto options = std::make_shared<MakeDataOptions>();
  line.need_word("task", options->task, "arithmetic or sequence");
  line.need("--train", options->train, "JSONL file to write");
  line.need("--validation", options->validation, "JSONL file to write");
  line.add("--demonstrations", options->demonstrations, "JSONL file to write, for sequence");
  line.add("--seed", options->seed, "of the order");
  line.run([options] { return run_make_data(*options); });
}

}  // namespace tandem::app
