// A model on disk, whatever its form: Hugging Face folder, GGUF file, or a name in the cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/config.h"
#include "text/tokenizer.h"

namespace tandem::model {

/// Where the tensors of an opened model come from.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  /// The shapes by Hugging Face name.
  [[nodiscard]] virtual std::map<std::string, std::vector<std::int64_t>> shapes() const = 0;

  /// The dtype by Hugging Face name as the file spells it, for reports.
  [[nodiscard]] virtual std::string stored_dtype(const std::string& name) const = 0;

  [[nodiscard]] virtual at::Tensor read(const std::string& name) const = 0;

  [[nodiscard]] virtual bool has_tokenizer() const = 0;
  [[nodiscard]] virtual text::Tokenizer tokenizer() const = 0;  // has_tokenizer() is true
  [[nodiscard]] virtual std::map<std::string, std::string> companion_files() const = 0;
};

/// Opens a model and reads its tensors one by one. Immutable, so any thread may read.
class CheckpointReader {
 public:
  /// `model` is a Hugging Face folder, a .gguf file, or `org/name` in the Hugging Face cache.
  ///
  /// Throws UserError when it is none of them, when the architecture is not supported, and when a
  /// file is damaged or a tensor missing, misshapen or unknown.
  static CheckpointReader open(const std::string& model);

  [[nodiscard]] const ModelConfig& config() const { return config_; }

  /// Hugging Face names, in the order of `expected_tensors`; nothing that is ignored.
  [[nodiscard]] std::vector<std::string> names() const;
  [[nodiscard]] bool has(const std::string& hf_name) const { return shapes_.count(hf_name) == 1; }

  /// A tensor in the file's dtype; from GGUF in fp32, with q and k rows in Hugging Face's order.
  /// Throws UserError for an unknown name.
  [[nodiscard]] at::Tensor read(const std::string& hf_name) const;

  /// The dtype in the file ("BF16", "Q4_1", ...), for reports.
  [[nodiscard]] std::string stored_dtype(const std::string& hf_name) const;

  /// The folder or the GGUF file that was opened.
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] bool is_gguf() const { return is_gguf_; }

  [[nodiscard]] bool has_tokenizer() const { return source_->has_tokenizer(); }

  /// Throws UserError when the model has none or a damaged one.
  [[nodiscard]] text::Tokenizer tokenizer() const;

  /// Tokenizer, chat template, generation config and licence files beside the weights, by name; of
  /// a GGUF file the tokenizer files that its metadata amount to.
  [[nodiscard]] std::map<std::string, std::string> companion_files() const;

 private:
  CheckpointReader() = default;

  std::filesystem::path path_;
  bool is_gguf_ = false;
  ModelConfig config_;
  std::map<std::string, std::vector<std::int64_t>> shapes_;
  std::unique_ptr<TensorSource> source_;
};

}  // namespace tandem::model
