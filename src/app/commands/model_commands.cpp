// tandem inspect, convert and make-data.
#include <filesystem>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <ATen/ATen.h>

#include "app/commands/compute_commands.h"
#include "app/jsonl.h"
#include "app/memory_plan.h"
#include "base/error.h"
#include "model/checkpoint.h"
#include "model/export.h"
#include "model/tensor_table.h"

namespace tandem::app {
namespace {

struct InspectOptions {
  std::string model, json;
};

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  }
  return text + "]";
}

std::int64_t volume(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const auto size : shape) {
    count *= size;
  }
  return count;
}

// What training this model takes at the recipe's default sizes, in float32.
MemoryPlan default_plan(const model::ModelConfig& config) {
  MemoryRequest request;
  request.config = config;
  request.rows_per_microbatch = 4096;
  request.prompts_per_step = 8;
  request.samples_per_prompt = 8;
  request.max_prompt_tokens = 512;
  request.max_new_tokens = 256;
  request.available_bytes = std::int64_t{1} << 60;
  return plan_memory(request);
}

int run_inspect(const InspectOptions& options) {
  const auto reader = model::CheckpointReader::open(options.model);
  const auto& c = reader.config();
  std::int64_t parameters = 0;
  for (const auto& tensor : model::expected_tensors(c)) {
    parameters += volume(tensor.shape);
  }
  const auto plan = default_plan(c);
  if (!options.json.empty()) {
    JsonObject object;
    object.add("family", c.family)
        .add("parameters", parameters)
        .add("num_layers", c.num_layers)
        .add("hidden_size", c.hidden_size)
        .add("intermediate_size", c.intermediate_size)
        .add("num_heads", c.num_heads)
        .add("num_kv_heads", c.num_kv_heads)
        .add("head_dim", c.head_dim)
        .add("vocab_size", c.vocab_size)
        .add("max_positions", c.max_positions)
        .add("tied_embeddings", c.tied_embeddings)
        .add("dtype", c.dtype)
        .add("train_peak_bytes", plan.train_peak())
        .add("rollout_peak_bytes", plan.rollout_peak());
    LineWriter out(options.json);
    out.write(object.str());
    out.finish();
    return 0;
  }
  LineWriter out("-");
  out.write(fmt::format("{}: {}, {:.1f} M parameters, stored as {}",
                        options.model,
                        c.family,
                        static_cast<double>(parameters) / 1e6,
                        c.dtype));
  out.write(fmt::format(
      "layers {}, hidden {}, intermediate {}, heads {} ({} kv, width {}), vocabulary {}{}, "
      "positions {}",
      c.num_layers,
      c.hidden_size,
      c.intermediate_size,
      c.num_heads,
      c.num_kv_heads,
      c.head_dim,
      c.vocab_size,
      c.tied_embeddings ? " (tied)" : "",
      c.max_positions));
  out.write("");
  for (const auto& tensor : model::expected_tensors(c)) {
    out.write(fmt::format("{:<52} {:<8} {}",
                          tensor.name,
                          reader.stored_dtype(tensor.name),
                          shape_text(tensor.shape)));
  }
  out.write("");
  out.write("memory to train it in float32 with the recipe's default sizes");
  out.write(plan.to_text(0));
  out.finish();
  return 0;
}

struct ConvertOptions {
  std::string source, target, dtype = "float32";
};

int run_convert(const ConvertOptions& options) {
  namespace fs = std::filesystem;
  if (options.dtype != "float32" && options.dtype != "bfloat16" && options.dtype != "float16") {
    fail<UserError>("--dtype is {}; use float32, bfloat16 or float16", options.dtype);
  }
  const auto reader = model::CheckpointReader::open(options.source);
  if (fs::exists(options.target) && fs::equivalent(options.source, options.target)) {
    fail<UserError>("{}: source and target are the same", options.target);
  }
  if (fs::exists(options.target) && !fs::exists(fs::path(options.target) / "config.json")) {
    fail<UserError>("{}: exists and is no model folder; give another place", options.target);
  }
  model::write_model_folder(options.target,
                            reader.config(),
                            [&](const std::string& name) { return reader.read(name); },
                            reader.companion_files(),
                            {.dtype = options.dtype});
  return 0;
}

}  // namespace

void set_up_inspect(CommandLine& line) {
  const auto options = std::make_shared<InspectOptions>();
  line.need_word(
      "model", options->model, "Hugging Face folder, .gguf file, or org/name in the cache");
  line.add("--json", options->json, "a file for the facts as one JSON object, or -");
  line.run([options] { return run_inspect(*options); });
}

void set_up_convert(CommandLine& line) {
  const auto options = std::make_shared<ConvertOptions>();
  line.need_word("source", options->source, "Hugging Face folder, .gguf file, or org/name");
  line.need_word("target", options->target, "Hugging Face folder to write; replaced whole");
  line.add("--dtype", options->dtype, "float32, bfloat16 or float16");
  line.run([options] { return run_convert(*options); });
}

}  // namespace tandem::app
