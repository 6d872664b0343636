#include "text/tokenizer.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/json_place.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/text_file.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr const char* kTokenizerFile = "tokenizer.json";
constexpr const char* kConfigFile = "tokenizer_config.json";
constexpr const char* kMapFile = "special_tokens_map.json";
constexpr const char* kTemplateFile = "chat_template.jinja";

// A special token is written as its text or as an object around it.
std::string token_text(const JsonPlace& token) {
  if (token.value().is_string()) {
    return token.string();
  }
  if (!token.value().is_object()) {
    token.refuse(R"(is {}, neither a string nor {{"content": ...}})", token.value().type_name());
  }
  return token.at("content").string();
}

void read_special_tokens(const JsonPlace& config, std::map<std::string, std::string>& out) {
  for (const char* name : {"bos_token",
                           "eos_token",
                           "unk_token",
                           "sep_token",
                           "pad_token",
                           "cls_token",
                           "mask_token"}) {
    if (config.has(name)) {
      out.emplace(name, token_text(config.at(name)));
    }
  }
}

// One template, or several with names, of which "default" is the chat's.
std::optional<std::string> read_chat_template(const JsonPlace& config) {
  if (!config.has("chat_template")) {
    return std::nullopt;
  }
  const JsonPlace place = config.at("chat_template");
  if (place.value().is_string()) {
    return place.string();
  }
  if (!place.value().is_array()) {
    place.refuse("is {}, neither a string nor an array of templates; put the template's text there",
                 place.value().type_name());
  }
  for (std::size_t i = 0; i < place.array_size(); ++i) {
    const JsonPlace entry = place.at(i);
    if (entry.at("name").string() == "default") {
      return entry.at("template").string();
    }
  }
  return std::nullopt;
}

nlohmann::json parse_object(const std::string& content,
                            const std::string& name,
                            const char* remedy) {
  nlohmann::json json;
  try {
    json = parse_json(content, name);
  } catch (const UserError& error) {
    fail<UserError>("{}; {}", error.what(), remedy);
  }
  if (!json.is_object()) {
    fail<UserError>("{}: is {}, not an object; {}", name, json.type_name(), remedy);
  }
  return json;
}

template <class T>
T read_part(const JsonPlace& root, const char* key) {
  return root.has(key) ? T(root.at(key)) : T();
}

}  // namespace

struct Tokenizer::Sources {
  std::string name;                          // of tokenizer.json, for errors
  std::map<std::string, std::string> files;  // by file name

  // The name of another file, for errors: it lies beside tokenizer.json.
  [[nodiscard]] std::string name_of(const char* file) const {
    return (std::filesystem::path(name).parent_path() / file).string();
  }
};

struct Tokenizer::Parts {
  Parts(const JsonPlace& root, std::map<std::string, std::string> sources)
      : normalizer(read_part<Normalizer>(root, "normalizer")),
        pre_tokenizer(read_part<PreTokenizer>(root, "pre_tokenizer")),
        added(root.has("added_tokens") ? read_added_tokens(root.at("added_tokens"))
                                       : std::vector<AddedToken>(),
              normalizer),
        model(root.at("model"), pre_tokenizer.gives_bytes()),
        post_processor(read_part<PostProcessor>(root, "post_processor")),
        decoder(read_part<Decoder>(root, "decoder")),
        size(model.vocabulary().size()),
        files(std::move(sources)) {
    for (const AddedToken& token : added.tokens()) {
      size = std::max(size, std::int64_t{token.id} + 1);
    }
  }

  void encode_text(std::string_view text, bool starts_text, std::vector<TokenId>& ids) const {
    Words words{.pieces = {text}, .owned = {}, .starts_text = starts_text};
    pre_tokenizer.apply(words);
    for (const std::string_view word : words.pieces) {
      model.encode(word, ids);
    }
  }

  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  AddedTokens added;
  BpeModel model;
  PostProcessor post_processor;
  Decoder decoder;
  std::int64_t size;  // ids of the model and of the added tokens
  std::map<std::string, std::string> special_tokens;
  std::optional<std::string> chat_template;
  std::map<std::string, std::string> files;
};

Tokenizer Tokenizer::build(Sources sources) {
  auto& files = sources.files;
  const nlohmann::json json =
      parse_object(files.at(kTokenizerFile), sources.name, "fetch the file again");
  const JsonPlace root(json, sources.name);
  const std::string type = root.at("model").string_or("type", "BPE");
  if (type != "BPE") {
    root.at("model").refuse("models of type \"{}\" are not supported, BPE is", type);
  }
  const auto parse_other = [&](const char* file) {
    const auto found = files.find(file);
    return found == files.end()
               ? nlohmann::json::object()
               : parse_object(
                     found->second, sources.name_of(file), "fetch the file again, or remove it");
  };
  const nlohmann::json config = parse_other(kConfigFile);
  const nlohmann::json map = parse_other(kMapFile);
  const auto parts = std::make_shared<Parts>(root, files);
  const JsonPlace config_place(config, sources.name_of(kConfigFile));
  read_special_tokens(config_place, parts->special_tokens);
  read_special_tokens({map, sources.name_of(kMapFile)}, parts->special_tokens);
  parts->chat_template = read_chat_template(config_place);
  if (const auto found = files.find(kTemplateFile); found != files.end()) {
    parts->chat_template = found->second;
  }
  return Tokenizer(parts);
}

Tokenizer Tokenizer::from_folder(const std::filesystem::path& folder) {
  Sources sources{.name = (folder / kTokenizerFile).string(), .files = {}};
  for (const char* file : {kTokenizerFile, kConfigFile, kMapFile, kTemplateFile}) {
    if (auto content = read_text_file(folder / file)) {
      sources.files.emplace(file, std::move(*content));
    }
  }
  if (!sources.files.contains(kTokenizerFile)) {
    fail<UserError>("{}: no such file; a tokenizer is read from tokenizer.json", sources.name);
  }
  return build(std::move(sources));
}

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json,
                               std::string_view tokenizer_config_json,
                               const std::string& name) {
  Sources sources{.name = name, .files = {{kTokenizerFile, std::string(tokenizer_json)}}};
  if (!tokenizer_config_json.empty()) {
    sources.files.emplace(kConfigFile, tokenizer_config_json);
  }
  return build(std::move(sources));
}

Tokenizer Tokenizer::from_gguf(const GgufVocabulary& vocabulary) {
  return build({.name = vocabulary.name, .files = tokenizer_files_of(vocabulary)});
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Parts& p = *parts_;
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 3 + 4);
  if (options.add_special_tokens) {
    ids = p.post_processor.before();
  }
  for (const Section& raw : p.added.split(text, false, options.allow_special)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const bool starts_text = raw.text.data() == text.data();
    std::string normalized;
    std::string_view section = raw.text;
    if (!p.normalizer.empty()) {
      normalized = p.normalizer.apply(std::string(section));
      section = normalized;
    }
    for (const Section& part : p.added.split(section, true, options.allow_special)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        p.encode_text(part.text, starts_text && part.text.data() == section.data(), ids);
      }
    }
  }
  if (options.add_special_tokens) {
    ids.insert(ids.end(), p.post_processor.after().begin(), p.post_processor.after().end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::string out;
  DecodeStream stream(parts_->decoder);
  for (const TokenId id : ids) {
    const std::string* token = token_of(id);
    if (token != nullptr && !(skip_special_tokens && is_special(id))) {
      stream.push(*token, out);
    }
  }
  stream.finish(out);
  return out;
}

std::int64_t Tokenizer::size() const {
  return parts_->size;
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  const AddedToken* added = parts_->added.find(std::string(token));
  return added != nullptr ? added->id : parts_->model.vocabulary().find(token);
}

const std::string* Tokenizer::token_of(TokenId id) const {
  const AddedToken* added = parts_->added.find(id);
  return added != nullptr ? &added->content : parts_->model.vocabulary().token(id);
}

bool Tokenizer::is_special(TokenId id) const {
  const AddedToken* added = parts_->added.find(id);
  return added != nullptr && added->special;
}

std::optional<TokenId> Tokenizer::id_of_special(const std::string& name) const {
  const auto found = parts_->special_tokens.find(name);
  return found == parts_->special_tokens.end() ? std::nullopt : id_of(found->second);
}

std::optional<TokenId> Tokenizer::eos_id() const {
  return id_of_special("eos_token");
}
std::optional<TokenId> Tokenizer::bos_id() const {
  return id_of_special("bos_token");
}
std::optional<TokenId> Tokenizer::pad_id() const {
  return id_of_special("pad_token");
}

const std::map<std::string, std::string>& Tokenizer::special_tokens() const {
  return parts_->special_tokens;
}

std::optional<std::string> Tokenizer::chat_template() const {
  return parts_->chat_template;
}

std::map<std::string, std::string> Tokenizer::files() const {
  return parts_->files;
}

const Decoder& Tokenizer::decoder() const {
  return parts_->decoder;
}

}  // namespace tandem::text
