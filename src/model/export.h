// Writing a model as a folder that Hugging Face's tools load.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include <ATen/core/Tensor.h>

#include "model/config.h"

namespace tandem::model {

struct ExportOptions {
  std::string dtype = "float32";              // of the weights: "float32", "bfloat16" or "float16"
  std::uint64_t shard_bytes = 5'000'000'000;  // a new file begins where this would be passed
};

/// Gives a tensor by its Hugging Face name, in any dtype. Asked once for each expected tensor, so
/// that a large model need not be in memory twice.
using TensorByName = std::function<at::Tensor(const std::string& hf_name)>;

/// Writes config.json (as it was read, with the new dtype), generation_config.json,
/// model.safetensors (or shards and their index) and `files` (tokenizer files by name, as
/// `CheckpointReader::companion_files` gives them) to the folder `path`.
///
/// The folder appears whole or not at all. Tied models have no lm_head; rows of the embedding
/// beyond the vocabulary are cut. Throws MachineError (disk, permission) and Error (a tensor of
/// another shape).
void write_model_folder(const std::filesystem::path& path,
                        const ModelConfig& config,
                        const TensorByName& tensor,
                        const std::map<std::string, std::string>& files,
                        const ExportOptions& options);

}  // namespace tandem::model
