// The tokenizer that a GGUF file carries.
#pragma once

#include "model/gguf.h"
#include "text/gguf_vocabulary.h"

namespace tandem::model {

/// True when the file has a tokenizer at all.
bool has_vocabulary(const GgufFile& file);

/// The `tokenizer.*` metadata. Throws UserError naming the file when there is none or an entry is
/// of the wrong kind.
text::GgufVocabulary vocabulary_from_gguf(const GgufFile& file);

}  // namespace tandem::model
