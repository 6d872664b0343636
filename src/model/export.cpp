#include "model/export.h"

#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include <ATen/ATen.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/safetensors_writer.h"
#include "model/tensor_io.h"
#include "model/tensor_table.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

using Shard = std::vector<TensorInfo>;

// Fills shards in order; a tensor above the limit gets one of its own.
std::vector<Shard> cut_into_shards(const ModelConfig& config,
                                   const std::string& stored_dtype,
                                   std::uint64_t limit) {
  std::vector<Shard> shards(1);
  std::uint64_t used = 0;
  for (ExpectedTensor& expected : expected_tensors(config)) {
    auto num_bytes = static_cast<std::uint64_t>(safetensors_dtype_bytes(stored_dtype));
    for (const std::int64_t size : expected.shape) {
      num_bytes *= static_cast<std::uint64_t>(size);
    }
    if (used != 0 && used + num_bytes > limit) {
      shards.emplace_back();
      used = 0;
    }
    used += num_bytes;
    shards.back().push_back(
        {.name = std::move(expected.name), .dtype = stored_dtype, .shape = expected.shape});
  }
  return shards;
}

// Embeddings padded to a round number of rows are cut back to the vocabulary.
at::Tensor fitted(const at::Tensor& tensor, const TensorInfo& info) {
  const bool per_token = info.name == "model.embed_tokens.weight" || info.name == "lm_head.weight";
  const bool padded =
      per_token && tensor.dim() == 2 && tensor.size(0) > info.shape[0] && info.shape.size() == 2;
  at::Tensor result = padded ? tensor.narrow(0, 0, info.shape[0]) : tensor;
  TANDEM_CHECK(result.sizes() == at::IntArrayRef(info.shape),
               "tensor {} to write has the shape {} instead of {}",
               info.name,
               shape_text(tensor.sizes().vec()),
               shape_text(info.shape));
  return result;
}

void write_shard(const fs::path& path,
                 const Shard& shard,
                 const TensorByName& tensor,
                 at::ScalarType dtype) {
  SafetensorsWriter writer(path, shard, {{"format", "pt"}});
  for (const TensorInfo& info : shard) {
    const at::Tensor plain =
        fitted(tensor(info.name), info).detach().to(at::kCPU, dtype).contiguous();
    writer.append(tensor_bytes(plain));
  }
  writer.close();
}

void write_weights(const fs::path& folder,
                   const std::vector<Shard>& shards,
                   const TensorByName& tensor,
                   at::ScalarType dtype) {
  if (shards.size() == 1) {
    write_shard(folder / "model.safetensors", shards.front(), tensor, dtype);
    return;
  }
  nlohmann::ordered_json weight_map;
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const auto name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_shard(folder / name, shards[i], tensor, dtype);
    const SafetensorsFile written(folder / name);
    for (const TensorInfo& info : written.tensors()) {
      weight_map[info.name] = name;
      total += info.end - info.begin;
    }
  }
  const nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                        {"weight_map", weight_map}};
  write_file_atomic(folder / "model.safetensors.index.json", index.dump(2) + "\n");
}

std::string generation_config(const ModelConfig& config) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (config.bos_id) {
    out["bos_token_id"] = *config.bos_id;
  }
  if (config.eos_ids.size() == 1) {
    out["eos_token_id"] = config.eos_ids.front();
  } else if (!config.eos_ids.empty()) {
    out["eos_token_id"] = config.eos_ids;
  }
  if (config.pad_id) {
    out["pad_token_id"] = *config.pad_id;
  }
  return out.dump(2) + "\n";
}

constexpr std::string_view kModelCard =
    "---\n"
    "library_name: transformers\n"
    "pipeline_tag: text-generation\n"
    "tags:\n"
    "- tandem\n"
    "---\n";

// Replacing a folder deletes what is in it, so it has to be one of ours or empty.
void check_target(const fs::path& path) {
  if (!fs::exists(path)) {
    return;
  }
  if (!fs::is_directory(path)) {
    fail<UserError>("{}: is a file; give another folder to write the model to", path.string());
  }
  if (!fs::is_empty(path) && !fs::exists(path / "config.json")) {
    fail<UserError>(
        "{}: is a folder that holds no model; give another folder to write the model to",
        path.string());
  }
}

}  // namespace

void write_model_folder(const fs::path& path,
                        const ModelConfig& config,
                        const TensorByName& tensor,
                        const std::map<std::string, std::string>& files,
                        const ExportOptions& options) {
  check_target(path);
  const at::ScalarType dtype = dtype_of_config(options.dtype, "export");
  const auto shards = cut_into_shards(config, dtype_to_safetensors(dtype), options.shard_bytes);
  write_folder_atomic(path, [&](const fs::path& folder) {
    write_file_atomic(folder / "config.json", to_json_with_dtype(config, options.dtype));
    write_file_atomic(folder / "generation_config.json", generation_config(config));
    write_file_atomic(folder / "README.md", kModelCard);
    for (const auto& [name, content] : files) {
      write_file_atomic(folder / name, content);
    }
    write_weights(folder, shards, tensor, dtype);
  });
}

}  // namespace tandem::model
