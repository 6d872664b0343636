// What GGUF calls the tensors that Hugging Face files call otherwise.
#pragma once

#include <optional>
#include <string>

namespace tandem::model {

/// The Hugging Face name of a GGUF tensor, or nothing when there is none.
std::optional<std::string> hf_name_of_gguf(const std::string& gguf_name);

/// True for tensors that hold what the config says too (rotary factors).
bool is_ignored_gguf_tensor(const std::string& gguf_name);

}  // namespace tandem::model
