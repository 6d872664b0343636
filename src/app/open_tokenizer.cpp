#include "app/open_tokenizer.h"

#include <filesystem>

#include "base/error.h"
#include "model/gguf.h"
#include "model/gguf_vocabulary.h"
#include "model/hub_cache.h"

namespace tandem::app {

text::Tokenizer open_tokenizer(const std::string& model) {
  namespace fs = std::filesystem;
  if (fs::is_directory(model)) {
    return text::Tokenizer::from_folder(model);
  }
  if (fs::exists(model)) {
    return text::Tokenizer::from_gguf(model::vocabulary_from_gguf(model::GgufFile(model)));
  }
  if (fs::exists(model)) {
    return text::Tokenizer::from_gguf(model::vocabulary_from_gguf(model::GgufFile(model)));
  }
  if (model::is_hub_name(model)) {
    return text::Tokenizer::from_folder(model::find_in_hub_cache(model));
  }
  fail<UserError>("{}: no such model; give a folder, a .gguf file or org/name in the cache", model);
}

}  // namespace tandem::app
