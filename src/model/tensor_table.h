// Which tensors a model has, by name and shape, as Hugging Face names them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/config.h"

namespace tandem::model {

struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;  // as stored: [out, in] for matrices
};

/// All tensors of a model, embedding first, then layer by layer, then the final norm and, when the
/// embeddings are not tied, the head.
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

/// Names that files carry and the decoder does not need: stored rotary frequencies.
bool is_ignored_tensor(const std::string& name);

/// Compares what a model on disk holds with what its config expects. Throws UserError naming
/// `where` and the first tensors that are missing, misshapen or unknown. `lm_head.weight` beside
/// tied embeddings passes here; the reader compares its values.
void check_tensors(const ModelConfig& config,
                   const std::map<std::string, std::vector<std::int64_t>>& shapes,
                   const std::string& where);

/// "[3, 4]", for messages.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace tandem::model
