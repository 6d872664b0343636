#include "model/safetensors_folder.h"

#include <set>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/in_quotes.h"
#include "model/json_fields.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

}  // namespace

std::map<std::string, std::string> parse_shard_index(std::string_view json,
                                                     const std::string& file_name) {
  const nlohmann::json root = parse_json_object(json, file_name);
  const auto weight_map = root.find("weight_map");
  if (weight_map == root.end() || !weight_map->is_object() || weight_map->empty()) {
    fail<UserError>("{}: has no weight_map; fetch the file again", file_name);
  }
  std::map<std::string, std::string> result;
  for (const auto& [name, file] : weight_map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>())) {
      fail<UserError>("{}: weight_map entry {} names no file of this folder; fetch the file again",
                      file_name,
                      in_quotes(name));
    }
    result[name] = file.get<std::string>();
  }
  return result;
}

SafetensorsFolder::SafetensorsFolder(const fs::path& folder) : folder_(folder) {
  const fs::path single = folder / "model.safetensors";
  const fs::path index = folder / "model.safetensors.index.json";
  if (fs::exists(single)) {
    files_.emplace_back(single);
    add_places();
  } else if (fs::exists(index)) {
    open_shards(folder, index);
  } else {
    const bool pickled = fs::exists(folder / "pytorch_model.bin") ||
                         fs::exists(folder / "pytorch_model.bin.index.json");
    fail<UserError>(
        "{}: has neither model.safetensors nor model.safetensors.index.json; {}",
        folder.string(),
        pickled ? "save its pickled weights as safetensors first" : "fetch the complete model");
  }
}

void SafetensorsFolder::open_shards(const fs::path& folder, const fs::path& index) {
  const auto weight_map = parse_shard_index(read_file(index), index.string());
  std::set<std::string> names;
  for (const auto& [tensor, file] : weight_map) {
    names.insert(file);
  }
  for (const std::string& name : names) {
    if (!fs::exists(folder / name)) {
      fail<UserError>(
          "{}: the shard {} is missing; fetch the complete model", index.string(), in_quotes(name));
    }
    files_.emplace_back(folder / name);
  }
  add_places();
  for (const auto& [tensor, file] : weight_map) {
    const auto found = places_.find(tensor);
    if (found == places_.end() || found->second.file->path().filename() != file) {
      fail<UserError>("{}: says that tensor {} is in {}, which does not hold it",
                      index.string(),
                      in_quotes(tensor),
                      in_quotes(file));
    }
  }
}

void SafetensorsFolder::add_places() {
  for (const SafetensorsFile& file : files_) {
    for (const TensorInfo& info : file.tensors()) {
      if (!places_.emplace(info.name, Place{&file, &info}).second) {
        fail<UserError>("{}: tensor {} stands in another shard too; fetch the complete model",
                        file.path().string(),
                        in_quotes(info.name));
      }
    }
  }
}

SafetensorsFolder::Place SafetensorsFolder::find(const std::string& name) const {
  const auto found = places_.find(name);
  if (found == places_.end()) {
    fail<UserError>("{}: has no tensor {}", folder_.string(), in_quotes(name));
  }
  return found->second;
}

}  // namespace tandem::model
