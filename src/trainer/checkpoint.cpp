#include "trainer/checkpoint.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>
#include <string_view>
#include <vector>

#include <cereal/archives/json.hpp>
#include <cereal/types/string.hpp>

#include "base/atomic_file.h"
#include "base/error.h"
#include "kernels/isa.h"
#include "model/checkpoint.h"
#include "model/export.h"
#include "model/safetensors.h"

namespace tandem::trainer {

namespace fs = std::filesystem;

template <class Archive>
void serialize(Archive& archive, RunState& state) {
  archive(cereal::make_nvp("step", state.step),
          cereal::make_nvp("optimizer_steps", state.optimizer_steps),
          cereal::make_nvp("num_tokens", state.num_tokens),
          cereal::make_nvp("best_step", state.best_step),
          cereal::make_nvp("best_reward", state.best_reward),
          cereal::make_nvp("stream", state.stream),
          cereal::make_nvp("recipe", state.recipe),
          cereal::make_nvp("arithmetic", state.arithmetic));
}

namespace {

constexpr const char* kStateFile = "state.json";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kWeightsFile = "weights.safetensors";
constexpr const char* kModelFolder = "model";
constexpr const char* kLatestFile = "latest";
constexpr const char* kBestFile = "best";
constexpr std::string_view kStepPrefix = "step-";

std::string to_json(RunState state) {
  state.arithmetic = kernels::name_of(kernels::arithmetic());
  std::ostringstream out;
  {
    cereal::JSONOutputArchive archive(out);
    archive(cereal::make_nvp("state", state));
  }
  return out.str();
}

RunState state_from_json(const fs::path& file) {
  RunState state;
  std::istringstream in(read_file(file));
  try {
    cereal::JSONInputArchive archive(in);
    archive(cereal::make_nvp("state", state));
  } catch (const std::exception& e) {
    fail<UserError>(
        "{}: is not a checkpoint's state; resume from an older one ({})", file.string(), e.what());
  }
  return state;
}

at::Tensor as_tensor(std::span<float> values) {
  return at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::kFloat);
}

void write_moments(const fs::path& file, AdamW& optimizer) {
  std::vector<std::pair<std::string, at::Tensor>> tensors;
  for (const auto& moments : optimizer.moments()) {
    tensors.emplace_back("first." + moments.name, as_tensor(moments.first));
    tensors.emplace_back("second." + moments.name, as_tensor(moments.second));
    if (!moments.master.empty()) {
      tensors.emplace_back("master." + moments.name, as_tensor(moments.master));
    }
  }
  model::write_safetensors(file, tensors);
}

void read_into(const model::SafetensorsFile& file,
               const std::string& name,
               std::span<float> target,
               const fs::path& path) {
  const auto tensor = file.tensor(name);
  if (tensor.numel() != static_cast<std::int64_t>(target.size()) ||
      tensor.scalar_type() != at::kFloat) {
    fail<UserError>("{}: {} has another shape than the model's parameter", path.string(), name);
  }
  as_tensor(target).copy_(tensor.flatten());
}

// Masters say in which precision the run worked; it goes on in that one, or not bit for bit.
void check_precision(const model::SafetensorsFile& file,
                     const OptimizerMoments& moments,
                     const fs::path& path) {
  const bool has_master = file.find("master." + moments.name) != nullptr;
  if (has_master == moments.master.empty()) {
    fail<UserError>("{}: is of a run in {}; resume it with model.dtype: {}",
                    path.string(),
                    has_master ? "bfloat16" : "float32",
                    has_master ? "bfloat16" : "float32");
  }
}

void read_moments(const fs::path& path, AdamW& optimizer) {
  const model::SafetensorsFile file(path);
  for (const auto& moments : optimizer.moments()) {
    check_precision(file, moments, path);
    read_into(file, "first." + moments.name, moments.first, path);
    read_into(file, "second." + moments.name, moments.second, path);
    if (!moments.master.empty()) {
      read_into(file, "master." + moments.name, moments.master, path);
    }
  }
}

std::map<std::string, at::Tensor> by_name(const model::WeightStore& weights) {
  const auto named = weights.named_tensors();
  return {named.begin(), named.end()};
}

void write_weights(const fs::path& folder, const CheckpointContent& content) {
  if (!content.export_model) {
    model::write_safetensors(folder / kWeightsFile, content.weights.named_tensors());
    return;
  }
  const auto tensors = by_name(content.weights);
  model::write_model_folder(folder / kModelFolder,
                            content.weights.config(),
                            [&](const std::string& name) { return tensors.at(name); },
                            content.model_files,
                            {.dtype = content.weights.dtype_name()});
}

void read_weights(const fs::path& checkpoint, model::WeightStore& weights) {
  const auto wanted = by_name(weights);
  const auto load = [&](const model::WeightStore::Reader& read) {
    weights.load([&](const std::string& name) {
      auto tensor = read(name);
      if (tensor.sizes() != wanted.at(name).sizes()) {
        fail<UserError>(
            "{}: {} has another shape than the recipe's model has", checkpoint.string(), name);
      }
      return tensor;
    });
  };
  if (fs::exists(checkpoint / kModelFolder)) {
    const auto reader = model::CheckpointReader::open((checkpoint / kModelFolder).string());
    load([&](const std::string& name) { return reader.read(name); });
    return;
  }
  const model::SafetensorsFile file(checkpoint / kWeightsFile);
  load([&](const std::string& name) { return file.tensor(name); });
}

// float32 has one arithmetic, so that its runs go on under either.
void check_arithmetic(const fs::path& checkpoint,
                      const RunState& state,
                      const model::WeightStore& weights) {
  const auto here = kernels::name_of(kernels::arithmetic());
  if (weights.dtype() != at::kFloat && state.arithmetic != here) {
    fail<UserError>("{}: was computed with arithmetic {}, not {}; resume with arithmetic={}",
                    checkpoint.string(),
                    state.arithmetic,
                    here,
                    state.arithmetic);
  }
}

// Checkpoints by their steps, whatever other names lie beside them.
std::map<std::int64_t, fs::path> step_folders(const fs::path& folder) {
  std::map<std::int64_t, fs::path> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::int64_t step = 0;
    if (name.starts_with(kStepPrefix) &&
        std::from_chars(name.data() + kStepPrefix.size(), name.data() + name.size(), step).ptr ==
            name.data() + name.size()) {
      folders[step] = entry.path();
    }
  }
  return folders;
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

}  // namespace

fs::path CheckpointFolder::save(const CheckpointContent& content, std::int64_t keep) const {
  const fs::path target = folder_ / fmt::format("{}{:06}", kStepPrefix, content.state.step);
  std::error_code error;
  fs::create_directories(folder_, error);
  write_folder_atomic(target, [&](const fs::path& temporary) {
    write_file_atomic(temporary / kStateFile, to_json(content.state));
    write_moments(temporary / kOptimizerFile, content.optimizer);
    write_weights(temporary, content);
  });
  const std::string name = target.filename().string() + "\n";
  write_file_atomic(folder_ / kLatestFile, name);
  if (content.state.best_step == content.state.step) {
    write_file_atomic(folder_ / kBestFile, name);
  }
  prune(keep, content.state.best_step);
  return target;
}

void CheckpointFolder::prune(std::int64_t keep, std::int64_t best_step) const {
  const auto folders = step_folders(folder_);
  auto left = static_cast<std::int64_t>(folders.size());
  for (const auto& [step, folder] : folders) {
    if (left-- <= std::max<std::int64_t>(keep, 1)) {
      return;
    }
    if (step != best_step) {
      remove_folder(folder);
    }
  }
}

std::optional<fs::path> CheckpointFolder::latest() const {
  const fs::path file = folder_ / kLatestFile;
  if (!fs::exists(file)) {
    return std::nullopt;
  }
  std::string name = read_file(file, 4096);
  name.erase(name.find_last_not_of(" \n\r\t") + 1);
  if (name.empty() || name.find('/') != std::string::npos || !fs::exists(folder_ / name)) {
    fail<UserError>("{}: names '{}', which is no checkpoint beside it", file.string(), name);
  }
  return folder_ / name;
}

void CheckpointFolder::cut_back(std::int64_t step) const {
  remove_leftovers(folder_);
  for (const auto& [folder_step, folder] : step_folders(folder_)) {
    if (folder_step > step) {
      remove_folder(folder);
    }
  }
}

RunState load_checkpoint(const fs::path& checkpoint,
                         model::WeightStore& weights,
                         AdamW& optimizer) {
  RunState state = state_from_json(checkpoint / kStateFile);
  check_arithmetic(checkpoint, state, weights);
  read_weights(checkpoint, weights);
  read_moments(checkpoint / kOptimizerFile, optimizer);
  optimizer.set_num_steps(state.optimizer_steps);
  return state;
}

}  // namespace tandem::trainer
