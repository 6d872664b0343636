// The weights of a Hugging Face folder: one safetensors file, or shards with an index.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/safetensors.h"

namespace tandem::model {

/// The `weight_map` of a model.safetensors.index.json: tensor name to file name.
///
/// Throws UserError naming `file_name`; file names that lead out of the folder are refused.
std::map<std::string, std::string> parse_shard_index(std::string_view json,
                                                     const std::string& file_name);

/// Immutable, so any thread may read.
class SafetensorsFolder {
 public:
  /// Opens model.safetensors, or else all shards that model.safetensors.index.json names.
  ///
  /// Throws UserError: no weights, a missing or damaged shard, an index naming a tensor that its
  /// shard lacks, a tensor in two shards.
  explicit SafetensorsFolder(const std::filesystem::path& folder);

  struct Place {
    const SafetensorsFile* file = nullptr;  // owned by the folder
    const TensorInfo* info = nullptr;
  };

  [[nodiscard]] const std::map<std::string, Place>& places() const { return places_; }

  /// Throws UserError for an unknown name.
  [[nodiscard]] Place find(const std::string& name) const;

 private:
  void open_shards(const std::filesystem::path& folder, const std::filesystem::path& index);
  void add_places();

  std::filesystem::path folder_;
  std::vector<SafetensorsFile> files_;
  std::map<std::string, Place> places_;
};

}  // namespace tandem::model
