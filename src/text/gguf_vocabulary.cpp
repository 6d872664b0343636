#include "text/gguf_vocabulary.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/split_patterns.h"

namespace tandem::text {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int32_t kUnknown = 2;  // tokenizer.ggml.token_type
constexpr std::int32_t kControl = 3;
constexpr std::int32_t kUserDefined = 4;
constexpr std::int32_t kByte = 6;
constexpr const char* kWordMark = "\xE2\x96\x81";

class Converter {
 public:
  explicit Converter(const GgufVocabulary& vocabulary) : v_(vocabulary) { check(); }

  [[nodiscard]] Json tokenizer() const {
    Json out;
    out["version"] = "1.0";
    out["truncation"] = nullptr;
    out["padding"] = nullptr;
    out["added_tokens"] = added_tokens();
    out["normalizer"] = is_llama() ? llama_normalizer() : gpt2_normalizer();
    out["pre_tokenizer"] = is_llama() ? Json() : gpt2_pre_tokenizer();
    out["post_processor"] = post_processor();
    out["decoder"] = is_llama() ? llama_decoder() : byte_level(true);
    out["model"] = model();
    return out;
  }

  [[nodiscard]] Json special_tokens() const {
    Json out = Json::object();
    const std::pair<const char*, std::optional<std::int32_t>> names[] = {
        {"bos_token", v_.bos_id},
        {"eos_token", v_.eos_id},
        {"pad_token", v_.pad_id},
        {"unk_token", v_.unknown_id},
    };
    for (const auto& [name, id] : names) {
      if (id.has_value()) {
        out[name] = v_.tokens[*id];
      }
    }
    return out;
  }

  [[nodiscard]] Json config() const {
    Json out;
    out["tokenizer_class"] = "PreTrainedTokenizerFast";
    out["clean_up_tokenization_spaces"] = false;
    out.update(special_tokens());
    if (v_.chat_template.has_value()) {
      out["chat_template"] = *v_.chat_template;
    }
    return out;
  }

 private:
  [[nodiscard]] bool is_llama() const { return v_.model == "llama"; }

  [[nodiscard]] std::int32_t type_of(std::size_t id) const {
    return v_.token_types.empty() ? 1 : v_.token_types[id];
  }

  void check() const {
    if (v_.model != "gpt2" && v_.model != "llama") {
      fail<UserError>("{}: tokenizer.ggml.model \"{}\" is not supported; gpt2 and llama are",
                      v_.name,
                      v_.model);
    }
    if (v_.tokens.empty()) {
      fail<UserError>("{}: tokenizer.ggml.tokens is missing or empty", v_.name);
    }
    check_size("token_type", v_.token_types.size(), !v_.token_types.empty());
    check_size("scores", v_.scores.size(), is_llama());
    for (const auto& id : {v_.bos_id, v_.eos_id, v_.pad_id, v_.unknown_id}) {
      if (id.has_value() && (*id < 0 || std::cmp_greater_equal(*id, v_.tokens.size()))) {
        fail<UserError>(
            "{}: a special token has id {}, there are {} tokens", v_.name, *id, v_.tokens.size());
      }
    }
  }

  void check_size(const char* key, std::size_t size, bool needed) const {
    if (needed && size != v_.tokens.size()) {
      fail<UserError>("{}: tokenizer.ggml.{} has {} entries for {} tokens",
                      v_.name,
                      key,
                      size,
                      v_.tokens.size());
    }
  }

  [[nodiscard]] Json added_tokens() const {
    Json list = Json::array();
    for (std::size_t id = 0; id < v_.tokens.size(); ++id) {
      const std::int32_t type = type_of(id);
      const bool special = type == kControl || type == kUnknown;
      if (special || type == kUserDefined) {
        list.push_back({{"id", id},
                        {"content", v_.tokens[id]},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", special}});
      }
    }
    return list;
  }

  [[nodiscard]] Json llama_normalizer() const {
    Json steps = Json::array();
    if (v_.add_space_prefix.value_or(true)) {
      steps.push_back({{"type", "Prepend"}, {"prepend", kWordMark}});
    }
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kWordMark}});
    return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
  }

  [[nodiscard]] Json llama_decoder() const {
    Json steps = Json::array();
    steps.push_back({{"type", "Replace"}, {"pattern", {{"String", kWordMark}}}, {"content", " "}});
    steps.push_back({{"type", "ByteFallback"}});
    steps.push_back({{"type", "Fuse"}});
    if (v_.add_space_prefix.value_or(true)) {
      steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    }
    return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
  }

  [[nodiscard]] Json gpt2_normalizer() const {
    return v_.pre == "qwen2" ? Json{{"type", "NFC"}} : Json();
  }

  static Json byte_level(bool use_regex) {
    return {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"trim_offsets", true},
            {"use_regex", use_regex}};
  }

  [[nodiscard]] Json gpt2_pre_tokenizer() const {
    Json steps = Json::array();
    if (v_.pre == "gpt-2" || v_.pre == "default" || v_.pre.empty()) {
      return byte_level(true);
    }
    if (v_.pre == "smollm") {
      steps.push_back({{"type", "Digits"}, {"individual_digits", true}});
      steps.push_back(byte_level(true));
    } else if (v_.pre == "qwen2" || v_.pre == "llama-bpe") {
      const auto pattern = v_.pre == "qwen2" ? SplitPattern::kQwen2 : SplitPattern::kLlama3;
      steps.push_back({{"type", "Split"},
                       {"pattern", {{"Regex", regex_of(pattern)}}},
                       {"behavior", "Isolated"},
                       {"invert", false}});
      steps.push_back(byte_level(false));
    } else {
      fail<UserError>(
          "{}: tokenizer.ggml.pre \"{}\" is not supported; gpt-2, default, smollm, qwen2 and "
          "llama-bpe are",
          v_.name,
          v_.pre);
    }
    return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
  }

  [[nodiscard]] Json post_processor() const {
    if (!v_.add_bos.value_or(is_llama()) || !v_.bos_id.has_value()) {
      return nullptr;
    }
    const std::string& bos = v_.tokens[*v_.bos_id];
    const Json mark = {{"SpecialToken", {{"id", bos}, {"type_id", 0}}}};
    const auto sequence = [](const char* id, int type) {
      return Json{{"Sequence", {{"id", id}, {"type_id", type}}}};
    };
    const Json second_mark = {{"SpecialToken", {{"id", bos}, {"type_id", 1}}}};
    Json out;
    out["type"] = "TemplateProcessing";
    out["single"] = Json::array({mark, sequence("A", 0)});
    out["pair"] = Json::array({mark, sequence("A", 0), second_mark, sequence("B", 1)});
    out["special_tokens"][bos] = {
        {"id", bos}, {"ids", Json::array({*v_.bos_id})}, {"tokens", Json::array({bos})}};
    return out;
  }

  [[nodiscard]] Json model() const {
    Json out;
    out["type"] = "BPE";
    out["dropout"] = nullptr;
    out["unk_token"] = nullptr;
    if (is_llama() && v_.unknown_id.has_value()) {
      out["unk_token"] = v_.tokens[*v_.unknown_id];
    }
    out["continuing_subword_prefix"] = nullptr;
    out["end_of_word_suffix"] = nullptr;
    out["fuse_unk"] = is_llama();
    out["byte_fallback"] = is_llama();
    out["ignore_merges"] = !is_llama() && v_.pre == "llama-bpe";
    Json& vocab = out["vocab"] = Json::object();
    auto& entries = vocab.get_ref<Json::object_t&>();
    entries.reserve(v_.tokens.size());
    for (std::size_t id = 0; id < v_.tokens.size(); ++id) {
      // Straight into the vector: the checked insertion of an ordered object is quadratic.
      entries.emplace_back(v_.tokens[id], id);
    }
    out["merges"] = is_llama() ? llama_merges() : gpt2_merges();
    return out;
  }

  [[nodiscard]] Json gpt2_merges() const {
    Json list = Json::array();
    for (std::size_t i = 0; i < v_.merges.size(); ++i) {
      const std::string& merge = v_.merges[i];
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string::npos || space + 1 == merge.size()) {
        fail<UserError>("{}: tokenizer.ggml.merges[{}] is not two tokens", v_.name, i);
      }
      list.push_back(Json::array({merge.substr(0, space), merge.substr(space + 1)}));
    }
    return list;
  }

  // SentencePiece merges whichever pair gives the token with the best score: each way to split a
  // token into two others is a merge, ranked by the token's score.
  [[nodiscard]] Json llama_merges() const {
    std::unordered_map<std::string_view, std::size_t> ids;
    for (std::size_t id = 0; id < v_.tokens.size(); ++id) {
      if (type_of(id) != kControl && type_of(id) != kUnknown && type_of(id) != kByte) {
        ids.emplace(v_.tokens[id], id);
      }
    }
    struct Merge {
      float score;
      std::string_view left;
      std::string_view right;
    };
    std::vector<Merge> merges;
    for (std::size_t id = 0; id < v_.tokens.size(); ++id) {
      const std::string_view token = v_.tokens[id];
      if (!ids.contains(token)) {
        continue;
      }
      for (std::size_t cut = 1; cut < token.size(); ++cut) {
        if (ids.contains(token.substr(0, cut)) && ids.contains(token.substr(cut))) {
          merges.push_back({v_.scores[id], token.substr(0, cut), token.substr(cut)});
        }
      }
    }
    std::ranges::stable_sort(merges, [](const Merge& a, const Merge& b) {
      return std::tuple(a.score, a.left.size(), a.right.size()) >
             std::tuple(b.score, b.left.size(), b.right.size());
    });
    Json list = Json::array();
    for (const Merge& merge : merges) {
      list.push_back(Json::array({merge.left, merge.right}));
    }
    return list;
  }

  const GgufVocabulary& v_;
};

}  // namespace

std::map<std::string, std::string> tokenizer_files_of(const GgufVocabulary& vocabulary) {
  const Converter converter(vocabulary);
  const auto text = [](const Json& json, int indent) {
    return json.dump(indent, ' ', false, Json::error_handler_t::replace);
  };
  std::map<std::string, std::string> files;
  files["tokenizer.json"] = text(converter.tokenizer(), 1);
  files["tokenizer_config.json"] = text(converter.config(), 2);
  files["special_tokens_map.json"] = text(converter.special_tokens(), 2);
  if (vocabulary.chat_template.has_value()) {
    files["chat_template.jinja"] = *vocabulary.chat_template;
  }
  return files;
}

}  // namespace tandem::text
