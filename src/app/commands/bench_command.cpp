// tandem bench: the project's benchmarks on a given model.
#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>

#include <fmt/format.h>

#include "app/bench/bench_case.h"
#include "app/commands/compute_commands.h"
#include "app/compute.h"
#include "app/jsonl.h"
#include "app/machine_facts.h"
#include "app/session.h"
#include "app/version.h"
#include "base/error.h"
#include "base/thread_pool.h"
#include "kernels/isa.h"

namespace tandem::app {
namespace {

struct BenchOptions {
  CommonOptions common;
  std::string kind, model, dtype = "float32", batch = "1,8,32,64,128";
  std::int64_t repeat = 3;
  BenchSizes sizes;
  std::optional<std::int64_t> prompt_tokens;
};

using BenchFunction = std::function<BenchResult(const Session&, const BenchOptions&)>;

struct BenchKind {
  const char* name;
  BenchFunction run;
};

const std::vector<BenchKind>& kinds() {
  static const std::vector<BenchKind> all = {
      {"rollout", [](const auto& s, const auto& o) { return bench_rollout(s, o.sizes); }},
      {"decode", [](const auto& s, const auto& o) { return bench_decode(s, o.sizes); }},
      {"score", [](const auto& s, const auto& o) { return bench_score(s, o.sizes); }},
      {"train",
       [](const auto& s, const auto& o) {
         return bench_train(s, o.sizes, o.prompt_tokens.has_value());
       }},
      {"step", [](const auto& s, const auto& o) { return bench_step(s, o.sizes); }},
      {"kernels", [](const auto& s, const auto&) { return bench_kernels(s); }}};
  return all;
}

std::vector<std::int64_t> batches_from(const std::string& text) {
  std::vector<std::int64_t> batches;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, ',');) {
    std::int64_t value = 0;
    if (!(std::stringstream(part) >> value) || value < 1) {
      fail<UserError>("--batch: '{}' is no list of batch sizes like 1,8,32", text);
    }
    batches.push_back(value);
  }
  return batches;
}

// Figures as JSON; "a/b" becomes {"a": {"b": ...}}. They are sorted, so groups stand together.
void add_figures(const std::map<std::string, double>& figures, JsonObject& record) {
  std::map<std::string, JsonObject> groups;
  for (const auto& [name, value] : figures) {
    const auto slash = name.find('/');
    if (slash == std::string::npos) {
      record.add(name, value);
    } else {
      groups[name.substr(0, slash)].add(name.substr(slash + 1), value);
    }
  }
  for (const auto& [name, group] : groups) {
    record.add_json(name, group.str());
  }
}

void check_sizes(const BenchOptions& options) {
  if (options.sizes.memory != "auto" && options.sizes.memory != "low") {
    fail<UserError>("--memory is {}; use auto or low", options.sizes.memory);
  }
  if (options.repeat < 1) {
    fail<UserError>("--repeat is {}; use 1 or more", options.repeat);
  }
  const auto& sizes = options.sizes;
  if (std::min({sizes.prompts,
                sizes.samples,
                sizes.new_tokens,
                sizes.sequences,
                options.prompt_tokens.value_or(1)}) < 1 ||
      sizes.tokens < 2) {
    fail<UserError>("bench: sizes are at least 1, and --tokens at least 2");
  }
}

const BenchKind& kind_of(const BenchOptions& options) {
  const auto& all = kinds();
  const auto kind =
      std::find_if(all.begin(), all.end(), [&](const auto& k) { return options.kind == k.name; });
  if (kind == all.end()) {
    fail<UserError>(
        "bench: unknown benchmark '{}'; there are: rollout, decode, score, train, step, "
        "kernels",
        options.kind);
  }
  return *kind;
}

void write_record(const BenchOptions& options,
                  const BenchResult& best,
                  std::span<const double> seconds,
                  std::int64_t peak_rss) {
  JsonObject record;
  record.add("bench", options.kind);
  add_figures(best.figures, record);
  record.add("seconds", seconds)
      .add("model", options.model)
      .add("dtype", options.dtype)
      .add("threads", std::int64_t{compute_pool().num_threads()})
      .add("isa", kernels::name_of(kernels::isa()))
      .add("arithmetic", kernels::name_of(kernels::arithmetic()))
      .add("cpu", cpu_name())
      .add("peak_rss_bytes", peak_rss)
      .add("version", version_text())
      .add("command", command_line());
  LineWriter out(options.common.json);
  out.write(record.str());
  out.finish();
}

int run_bench(BenchOptions options) {
  const BenchKind& kind = kind_of(options);
  check_sizes(options);
  options.sizes.batches = batches_from(options.batch);
  options.sizes.prompt_tokens = options.prompt_tokens.value_or(options.sizes.prompt_tokens);
  set_up_compute({options.common.threads, options.common.isa, options.common.arithmetic});
  const Session session = open_session(options.model, {.dtype = options.dtype});
  std::vector<BenchResult> results;
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < options.repeat; ++i) {
    results.push_back(kind.run(session, options));
    seconds.push_back(results.back().seconds);
  }
  auto& best = *std::min_element(
      results.begin(), results.end(), [](auto& a, auto& b) { return a.seconds < b.seconds; });
  const std::int64_t peak_rss = peak_rss_bytes();  // before the limits, which need memory too
  if (!best.parts.empty()) {
    add_roofline(session, measure_machine_limits(), best);
  }
  write_record(options, best, seconds, peak_rss);
  return 0;
}

}  // namespace

void set_up_bench(CommandLine& line) {
  const auto options = std::make_shared<BenchOptions>();
  auto& sizes = options->sizes;
  line.need_word("what", options->kind, "rollout, decode, score, train, step or kernels");
  line.need("--model", options->model, "Hugging Face folder, .gguf file, or org/name in the cache");
  line.add("--dtype", options->dtype, "float32 or bfloat16");
  line.add("--repeat", options->repeat, "repetitions; the figures are of the fastest");
  line.add("--prompts", sizes.prompts, "rollout, step: prompts");
  line.add("--samples", sizes.samples, "rollout, step: samples a prompt; train: a group");
  line.add("--prompt-tokens",
           options->prompt_tokens,
           "rollout, decode, step: tokens a prompt (128); train: shared ones of a group");
  line.add("--new-tokens", sizes.new_tokens, "rollout, decode, step: tokens a sample");
  line.add("--sequences", sizes.sequences, "score, train: sequences");
  line.add("--tokens", sizes.tokens, "score, train: tokens a sequence");
  line.add("--batch", options->batch, "decode: batch sizes");
  line.add("--memory", sizes.memory, "train, step: auto, or low as trainer.memory");
  line.flag("--reuse-activations", sizes.reuse, "step: as trainer.reuse_activations");
  line.flag("--shared-text", sizes.shared_text, "rollout: prompts have their first half in common");
  add_common_options(line, options->common);
  line.run([options] { return run_bench(*options); });
}

}  // namespace tandem::app
