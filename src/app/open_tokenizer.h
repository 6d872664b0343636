// The tokenizer of a model without its weights.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace tandem::app {

/// `model` is a Hugging Face folder, a .gguf file, or `org/name` in the Hugging Face cache. Throws
/// UserError that names what is missing or wrong.
text::Tokenizer open_tokenizer(const std::string& model);

}  // namespace tandem::app
