#include "model/checkpoint.h"

#include <array>
#include <utility>

#include <ATen/ATen.h>

#include "base/atomic_file.h"
#include "base/error.h"
#include "model/families.h"
#include "model/gguf.h"
#include "model/gguf_names.h"
#include "model/gguf_vocabulary.h"
#include "model/hub_cache.h"
#include "model/in_quotes.h"
#include "model/safetensors_folder.h"
#include "model/tensor_table.h"

namespace tandem::model {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHead = "lm_head.weight";
constexpr std::string_view kEmbedding = "model.embed_tokens.weight";

// What a folder may hold beside config and weights and an export hands on.
constexpr std::array kCompanions = {
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "chat_template.jinja",
    "special_tokens_map.json",
    "LICENSE",
    "LICENSE.txt",
};

class FolderSource final : public TensorSource {
 public:
  explicit FolderSource(const fs::path& folder) : path_(folder), folder_(folder) {}

  [[nodiscard]] std::map<std::string, std::vector<std::int64_t>> shapes() const override {
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const auto& [name, place] : folder_.places()) {
      shapes[name] = place.info->shape;
    }
    return shapes;
  }

  [[nodiscard]] std::string stored_dtype(const std::string& name) const override {
    return folder_.find(name).info->dtype;
  }

  [[nodiscard]] at::Tensor read(const std::string& name) const override {
    return folder_.find(name).file->tensor(name);
  }

  [[nodiscard]] bool has_tokenizer() const override {
    return fs::exists(path_ / "tokenizer.json") || fs::exists(path_ / "tokenizer.json.gz");
  }

  [[nodiscard]] text::Tokenizer tokenizer() const override {
    return text::Tokenizer::from_folder(path_);
  }

  [[nodiscard]] std::map<std::string, std::string> companion_files() const override {
    std::map<std::string, std::string> files;
    for (const char* name : kCompanions) {
      if (fs::exists(path_ / name)) {
        files[name] = read_file(path_ / name);
      }
    }
    return files;
  }

 private:
  fs::path path_;
  SafetensorsFolder folder_;
};

class GgufSource final : public TensorSource {
 public:
  GgufSource(GgufFile file, const ModelConfig& config)
      : file_(std::move(file)),
        num_heads_(config.num_heads),
        num_kv_heads_(config.num_kv_heads),
        permuted_(find_family(config.family)->gguf_permutes_qk) {
    for (const GgufTensor& tensor : file_.tensors()) {
      if (!is_ignored_gguf_tensor(tensor.name)) {
        tensors_[hf_name_of_gguf(tensor.name).value_or(tensor.name)] = &tensor;
      }
    }
  }

  [[nodiscard]] std::map<std::string, std::vector<std::int64_t>> shapes() const override {
    std::map<std::string, std::vector<std::int64_t>> shapes;
    for (const auto& [name, tensor] : tensors_) {
      shapes[name] = tensor->shape;
    }
    return shapes;
  }

  [[nodiscard]] std::string stored_dtype(const std::string& name) const override {
    return std::string(find(name).type->name);
  }

  [[nodiscard]] at::Tensor read(const std::string& name) const override {
    at::Tensor tensor = file_.dequantize(find(name).name);
    const bool is_q = name.find(".self_attn.q_proj.") != std::string::npos;
    const bool is_k = name.find(".self_attn.k_proj.") != std::string::npos;
    return permuted_ && (is_q || is_k) ? half_split(tensor, is_q ? num_heads_ : num_kv_heads_)
                                       : tensor;
  }

  [[nodiscard]] bool has_tokenizer() const override { return has_vocabulary(file_); }

  [[nodiscard]] text::Tokenizer tokenizer() const override {
    return text::Tokenizer::from_gguf(vocabulary_from_gguf(file_));
  }

  [[nodiscard]] std::map<std::string, std::string> companion_files() const override {
    return has_vocabulary(file_) ? text::tokenizer_files_of(vocabulary_from_gguf(file_))
                                 : std::map<std::string, std::string>();
  }

 private:
  // Rows of a head lie as the pairs (2j, 2j + 1) that GGUF rotates; Hugging Face rotates
  // (j, j + d/2). [H * d, in] or [H * d].
  static at::Tensor half_split(const at::Tensor& tensor, std::int64_t num_heads) {
    const std::int64_t pairs = tensor.size(0) / num_heads / 2;
    return tensor.view({num_heads, pairs, 2, -1}).transpose(1, 2).reshape(tensor.sizes());
  }

  [[nodiscard]] const GgufTensor& find(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      fail<UserError>("{}: has no tensor {}", file_.path().string(), in_quotes(name));
    }
    return *found->second;
  }

  GgufFile file_;
  std::int64_t num_heads_;
  std::int64_t num_kv_heads_;
  bool permuted_;
  std::map<std::string, const GgufTensor*> tensors_;  // into file_, whose vector does not change
};

ModelConfig read_folder_config(const fs::path& folder) {
  const fs::path path = folder / "config.json";
  if (!fs::exists(path)) {
    fail<UserError>(
        "{}: has no config.json; give a Hugging Face folder or the path of a .gguf file",
        folder.string());
  }
  ModelConfig config = parse_config(read_file(path), path.string());
  const fs::path generation = folder / "generation_config.json";
  if (fs::exists(generation)) {
    add_generation_config(config, read_file(generation), generation.string());
  }
  return config;
}

void check_dtypes(const CheckpointReader& reader) {
  for (const std::string& name : reader.names()) {
    const std::string dtype = reader.stored_dtype(name);
    if (dtype != "F32" && dtype != "F16" && dtype != "BF16") {
      fail<UserError>("{}: tensor {} has dtype {}; supported: F32, F16, BF16",
                      reader.path().string(),
                      name,
                      dtype);
    }
  }
}

// A file may hold the head of a tied model once more; another one would silently be lost.
void check_tied_head(const TensorSource& source, const std::string& where) {
  if (!at::equal(source.read(std::string(kHead)), source.read(std::string(kEmbedding)))) {
    fail<UserError>(
        "{}: lm_head.weight differs from model.embed_tokens.weight, but config.json "
        "ties them; set tie_word_embeddings to false there",
        where);
  }
}

fs::path resolve(const std::string& model) {
  if (fs::exists(model)) {
    return model;
  }
  if (is_hub_name(model)) {
    return find_in_hub_cache(model);
  }
  fail<UserError>(
      "{}: no such model; give a Hugging Face folder, a .gguf file or a name of the "
      "form org/name",
      in_quotes(model));
}

}  // namespace

CheckpointReader CheckpointReader::open(const std::string& model) {
  CheckpointReader reader;
  reader.path_ = resolve(model);
  if (fs::is_directory(reader.path_)) {
    reader.config_ = read_folder_config(reader.path_);
    reader.source_ = std::make_unique<FolderSource>(reader.path_);
  } else {
    if (reader.path_.extension() == ".safetensors") {
      fail<UserError>("{}: is only part of a model; give the folder that holds it", model);
    }
    GgufFile file(reader.path_);
    reader.is_gguf_ = true;
    reader.config_ = config_from_gguf(file);
    reader.source_ = std::make_unique<GgufSource>(std::move(file), reader.config_);
  }
  reader.shapes_ = reader.source_->shapes();
  check_tensors(reader.config_, reader.shapes_, model);
  if (!reader.is_gguf_) {
    check_dtypes(reader);
  }
  if (reader.config_.tied_embeddings && reader.has(std::string(kHead))) {
    check_tied_head(*reader.source_, model);
  }
  return reader;
}

std::vector<std::string> CheckpointReader::names() const {
  std::vector<std::string> names;
  for (ExpectedTensor& tensor : expected_tensors(config_)) {
    names.push_back(std::move(tensor.name));
  }
  return names;
}

at::Tensor CheckpointReader::read(const std::string& hf_name) const {
  return source_->read(hf_name);
}

std::string CheckpointReader::stored_dtype(const std::string& hf_name) const {
  return source_->stored_dtype(hf_name);
}

text::Tokenizer CheckpointReader::tokenizer() const {
  if (!has_tokenizer()) {
    fail<UserError>("{}: has no tokenizer; fetch the complete model", path_.string());
  }
  return source_->tokenizer();
}

std::map<std::string, std::string> CheckpointReader::companion_files() const {
  return source_->companion_files();
}

}  // namespace tandem::model
