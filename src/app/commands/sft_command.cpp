// tandem sft: supervised warm-up on the same stack.
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "app/commands/compute_commands.h"
#include "app/compute.h"
#include "app/console.h"
#include "app/interrupt.h"
#include "app/jsonl.h"
#include "app/recipe.h"
#include "app/rl/recipe_parts.h"
#include "app/rl/records.h"
#include "app/rl/step_metrics.h"
#include "app/run_folder.h"
#include "base/log.h"
#include "base/stopwatch.h"
#include "data/sft.h"
#include "data/stream.h"
#include "model/export.h"
#include "trainer/sft.h"
#include "trainer/weight_update.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

struct SftOptions {
  std::string recipe, isa, arithmetic;
  std::vector<std::string> overrides;
  std::optional<std::int64_t> threads;
};

LoadedRecipe load(const SftOptions& options) {
  auto overrides = options.overrides;
  if (options.threads) {
    overrides.push_back(fmt::format("threads={}", *options.threads));
  }
  if (!options.isa.empty()) {
    overrides.push_back("isa=" + options.isa);
  }
  if (!options.arithmetic.empty()) {
    overrides.push_back("arithmetic=" + options.arithmetic);
  }
  return load_recipe(options.recipe, overrides, Purpose::kSft);
}

// The loss of a position is of the token behind it, so the first id is never a target.
trainer::SftExample to_example(const data::SftSequence& sequence) {
  trainer::SftExample example;
  example.ids = sequence.ids;
  example.prompt_length = 1;
  example.mask.assign(sequence.mask.begin() + 1, sequence.mask.end());
  example.label = sequence.id;
  return example;
}

std::vector<data::SftSource> load_sources(const Recipe& recipe, const Session& session) {
  const std::int64_t longest =
      std::min(session.decoder->max_positions(),
               recipe.sft.max_tokens.value_or(recipe.trainer.tokens_per_microbatch));
  const auto rows = row_config(recipe, longest);
  std::vector<data::SftSource> sources;
  for (const auto& section : recipe.sft.data) {
    sources.push_back(data::load_sft(section.path, rows, text_model(session)));
    TANDEM_LOG(info, "{}", data::describe(sources.back().report, section.path, rows));
  }
  return sources;
}

data::DrawStream make_stream(const Recipe& recipe, const std::vector<data::SftSource>& sources) {
  std::vector<data::StreamSource> streams;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    streams.push_back(data::stream_source(sources[i], recipe.sft.data[i].weight));
  }
  return data::DrawStream(std::move(streams),
                          {.seed = static_cast<std::uint64_t>(recipe.seed),
                           .rows_per_step = recipe.sft.batch_size,
                           .last_batch = data::last_batch_from(recipe.data.last_batch),
                           .shuffle = recipe.data.shuffle});
}

// What it takes, of sequences of the data's greatest length.
MemoryPlan plan_of(const Recipe& recipe,
                   const Session& session,
                   const std::vector<data::SftSource>& sources) {
  std::int64_t longest = 1;
  for (const auto& source : sources) {
    longest = std::max(longest, source.report.max_tokens);
  }
  MemoryRequest request = memory_request(recipe, session, longest);
  request.sampling = false;
  request.with_reference = false;
  request.prompts_per_step = recipe.sft.batch_size;
  request.max_new_tokens = 0;
  return plan_memory(request);
}

void export_model(const Session& session, const fs::path& folder) {
  const auto tensors = session.weights->named_tensors();
  const std::map<std::string, at::Tensor> by_name(tensors.begin(), tensors.end());
  model::write_model_folder(folder,
                            session.weights->config(),
                            [&](const std::string& name) { return by_name.at(name); },
                            session.files,
                            {.dtype = session.weights->dtype_name()});
}

Metrics sft_metrics(const trainer::SftReport& report, double rate, double epoch, double seconds) {
  Metrics metrics;
  metrics["loss"] = report.loss;
  metrics["grad_norm"] = report.update.grad_norm;
  metrics["learning_rate"] = rate;
  metrics["epoch"] = epoch;
  metrics["num_targets"] = static_cast<double>(report.num_targets);
  metrics["train/skipped_steps"] = report.update.skipped ? 1 : 0;
  metrics["train/tokens_per_s"] = static_cast<double>(report.num_targets) / seconds;
  metrics["step_time"] = seconds;
  metrics["memory/peak_rss_bytes"] = static_cast<double>(peak_rss_bytes());
  return metrics;
}

int run_sft(const SftOptions& options) {
  const auto loaded = load(options);
  const Recipe& recipe = loaded.recipe;
  set_up_compute({recipe.threads.value_or(0), recipe.isa, recipe.arithmetic});
  const Session session = open_model(recipe);
  const auto sources = load_sources(recipe, session);
  auto stream = make_stream(recipe, sources);
  const MemoryPlan plan = plan_of(recipe, session, sources);
  const trainer::SftConfig config = {.rows_per_microbatch = plan.rows_per_microbatch,
                                     .checkpoint_layers = plan.checkpoint_layers,
                                     .keep_logits = plan.keep_logits,
                                     .keep_gradients = plan.keep_buffers,
                                     .num_ids = session.num_ids};
  trainer::AdamW optimizer(adamw_config(recipe.optimizer),
                           trainer::optimizer_parameters(*session.weights));
  const auto schedule =
      schedule_config(recipe.sft.schedule, recipe.sft.warmup_steps, recipe.sft.steps);
  const RunFolder folder = RunFolder::create(recipe.run.dir, recipe.run.name);
  log_to_console(log_file_writer(folder.log_file()));
  folder.write_file("recipe.yaml", recipe_yaml(recipe));
  folder.write_file("run.json", run_json(recipe, "tandem sft " + options.recipe));
  watch_for_signals();
  Progress progress("sft", recipe.sft.steps, recipe.log.console);
  for (std::int64_t step = 1; step <= recipe.sft.steps && noted_signal() == 0; ++step) {
    const Stopwatch watch;
    std::vector<trainer::SftExample> batch;
    for (const auto& draw : stream.next_step()) {
      batch.push_back(
          to_example(sources[draw.source].sequences[static_cast<std::size_t>(draw.row)]));
    }
    const double rate = trainer::learning_rate(schedule, recipe.sft.learning_rate, step - 1);
    const auto report = trainer::sft_step(*session.decoder, optimizer, batch, config, rate);
    if (report.update.skipped) {
      TANDEM_LOG(warn,
                 "step {}: update skipped: the gradient of {} is not finite",
                 step,
                 report.update.nonfinite);
    }
    auto metrics = sft_metrics(report, rate, stream.epoch(), watch.seconds());
    metrics["memory/planned_bytes"] = static_cast<double>(plan.peak());
    folder.append_metrics(step, metrics);
    progress.update(step, fmt::format("loss {:.4f}", report.loss));
  }
  export_model(session, folder.path() / "model");
  LineWriter out("-");
  out.write(fmt::format("memory: {} MB at the peak, {} MB planned",
                        peak_rss_bytes() / 1'000'000,
                        plan.peak() / 1'000'000));
  out.write(fmt::format("model: {}", (folder.path() / "model").string()));
  out.finish();
  return noted_signal() == 0 ? 0 : 128 + noted_signal();
}

}  // namespace

void set_up_sft(CommandLine& line) {
  const auto options = std::make_shared<SftOptions>();
  line.need_word("recipe", options->recipe, "YAML recipe with an sft section");
  line.words("overrides", options->overrides, "keys to set, for example sft.steps=50");
  line.add("--threads", options->threads, "compute threads");
  line.add("--isa", options->isa, "avx512, avx2 or portable");
  line.add("--arithmetic", options->arithmetic, "of bfloat16: widened or dot_bf16");
  line.run([options] { return run_sft(*options); });
}

}  // namespace tandem::app
