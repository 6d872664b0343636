// Checkpoints: a folder that appears whole or not at all, and from which a run goes on bit for bit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "model/weight_store.h"
#include "trainer/optimizer.h"

namespace tandem::trainer {

/// Where a run stands, besides weights and moments.
struct RunState {
  std::int64_t step = 0;             // finished steps
  std::int64_t optimizer_steps = 0;  // updates of the optimizer
  std::int64_t num_tokens = 0;       // prompt and model tokens so far
  std::int64_t best_step = -1;       // of the highest validation reward, where that is kept
  double best_reward = 0;
  std::string stream;      // state of the prompt stream, JSON
  std::string recipe;      // effective recipe, for a message when it differs
  std::string arithmetic;  // of the process that saved it; `save` puts it in
};

struct CheckpointContent {
  const RunState& state;
  const model::WeightStore& weights;
  AdamW& optimizer;
  bool export_model = true;  // weights as model/, a Hugging Face folder; else weights.safetensors
  const std::map<std::string, std::string>& model_files;  // tokenizer files beside the model
};

/// The checkpoints of one run: `step-000050/` folders, `latest`, which names the newest, and where
/// it is kept `best`, which names that of RunState::best_step.
///
/// Each folder has state.json, optimizer.safetensors (moments `first.NAME`, `second.NAME`, and the
/// masters `master.NAME` of a bfloat16 model) and the weights. It is filled beside its place,
/// synced, and renamed; then `latest` is replaced, then older ones beyond `keep` are deleted, the
/// best excepted. So a kill at any moment leaves `latest` naming a whole checkpoint.
class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::filesystem::path folder) : folder_(std::move(folder)) {}

  /// Throws MachineError (disk, permission); the checkpoints before it are then untouched.
  std::filesystem::path save(const CheckpointContent& content, std::int64_t keep) const;

  /// The checkpoint that `latest` names, or none. Throws UserError when it is damaged.
  [[nodiscard]] std::optional<std::filesystem::path> latest() const;

  /// Deletes what a killed writer left, and checkpoints of later steps than `step`.
  void cut_back(std::int64_t step) const;

 private:
  void prune(std::int64_t keep, std::int64_t best_step) const;

  std::filesystem::path folder_;
};

/// Fills weights and optimizer from a checkpoint. Throws UserError when it is of bfloat16 weights
/// and another kernels::Arithmetic than this process uses, and naming the file when one is missing,
/// truncated, or of another model.
RunState load_checkpoint(const std::filesystem::path& checkpoint,
                         model::WeightStore& weights,
                         AdamW& optimizer);

}  // namespace tandem::trainer
