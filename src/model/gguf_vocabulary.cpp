#include "model/gguf_vocabulary.h"

#include <limits>

#include "base/error.h"
#include "model/in_quotes.h"

namespace tandem::model {
namespace {

const std::string kPrefix = "tokenizer.ggml.";

std::int32_t narrow(const GgufFile& file, const std::string& key, std::int64_t value) {
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    fail<UserError>("{}: metadata {} holds {}, which is no token id; fetch the file again",
                    file.path().string(),
                    in_quotes(key),
                    value);
  }
  return static_cast<std::int32_t>(value);
}

std::optional<std::int32_t> token_id(const GgufFile& file, const std::string& name) {
  const std::string key = kPrefix + name;
  const auto value = file.integer(key);
  return value ? std::optional(narrow(file, key, *value)) : std::nullopt;
}

template <class T>
T copy_or_empty(const T* values) {
  return values == nullptr ? T() : *values;
}

}  // namespace

bool has_vocabulary(const GgufFile& file) {
  return file.text(kPrefix + "model").has_value();
}

text::GgufVocabulary vocabulary_from_gguf(const GgufFile& file) {
  const std::string where = file.path().string();
  text::GgufVocabulary result;
  result.name = where;
  const auto kind = file.text(kPrefix + "model");
  if (!kind) {
    fail<UserError>("{}: has no tokenizer (metadata 'tokenizer.ggml.model' is missing)", where);
  }
  result.model = *kind;
  result.pre = file.text(kPrefix + "pre").value_or("");
  result.tokens = copy_or_empty(file.texts(kPrefix + "tokens"));
  result.merges = copy_or_empty(file.texts(kPrefix + "merges"));
  for (const double score : copy_or_empty(file.numbers(kPrefix + "scores"))) {
    result.scores.push_back(static_cast<float>(score));
  }
  const std::string types = kPrefix + "token_type";
  for (const std::int64_t type : copy_or_empty(file.integers(types))) {
    result.token_types.push_back(narrow(file, types, type));
  }
  result.bos_id = token_id(file, "bos_token_id");
  result.eos_id = token_id(file, "eos_token_id");
  result.pad_id = token_id(file, "padding_token_id");
  result.unknown_id = token_id(file, "unknown_token_id");
  result.add_bos = file.boolean(kPrefix + "add_bos_token");
  result.add_space_prefix = file.boolean(kPrefix + "add_space_prefix");
  result.chat_template = file.text("tokenizer.chat_template");
  return result;
}

}  // namespace tandem::model
