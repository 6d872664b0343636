#include "text/bpe.h"

#include <algorithm>
#include <iterator>

#include "text/bpe_cache.h"
#include "text/byte_level.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

constexpr std::int64_t kMaxId = 1 << 24;  // an id beyond it is a damaged file, not a vocabulary

}  // namespace

void Vocabulary::add(const std::string& token, TokenId id) {
  const auto [entry, is_new] = ids_.emplace(token, id);
  if (static_cast<std::size_t>(id) >= tokens_.size()) {
    tokens_.resize(static_cast<std::size_t>(id) + 1);
  }
  tokens_[id] = &entry->first;
}

std::optional<TokenId> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

const std::string* Vocabulary::token(TokenId id) const {
  return id >= 0 && id < size() ? tokens_[id] : nullptr;
}

BpeModel::BpeModel(const JsonPlace& config, bool gives_bytes)
    : prefix_(config.string_or("continuing_subword_prefix", "")),
      suffix_(config.string_or("end_of_word_suffix", "")),
      gives_bytes_(gives_bytes),
      fuse_unknown_(config.flag("fuse_unk", false)),
      byte_fallback_(config.flag("byte_fallback", false)),
      ignore_merges_(config.flag("ignore_merges", false)),
      cache_(std::make_unique<Cache>()) {
  if (config.has("dropout") && config.at("dropout").value() != 0.0) {
    config.at("dropout").refuse("random dropout of merges is not supported");
  }
  read_vocabulary(config);
  read_merges(config);
  if (config.has("unk_token")) {
    const JsonPlace unknown = config.at("unk_token");
    unknown_ = vocabulary_.find(unknown.string());
    if (!unknown_.has_value()) {
      unknown.refuse("\"{}\" is not in the vocabulary", unknown.string());
    }
  }
  for (int b = 0; b < 256; ++b) {
    const std::string token = gives_bytes_ ? byte_characters()[b] : fmt::format("<0x{:02X}>", b);
    byte_ids_[b] = vocabulary_.find(token).value_or(-1);
  }
}

BpeModel::~BpeModel() = default;

void BpeModel::read_vocabulary(const JsonPlace& config) {
  const JsonPlace place = config.at("vocab");
  if (!place.value().is_object()) {
    place.refuse("is {}, not an object", place.value().type_name());
  }
  for (const auto& [token, value] : place.value().items()) {
    if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
        value.get<std::int64_t>() >= kMaxId) {
      place.refuse("the id of token \"{}\" is no integer from 0 to {}", token, kMaxId - 1);
    }
    vocabulary_.add(token, value.get<TokenId>());
  }
}

void BpeModel::read_merges(const JsonPlace& config) {
  const JsonPlace place = config.at("merges");
  const std::size_t num_merges = place.array_size();
  merges_ = MergeTable(num_merges);
  for (std::size_t i = 0; i < num_merges; ++i) {
    const nlohmann::json& merge = place.value()[i];
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      add_merge(
          place, i, merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
      continue;
    }
    const std::string_view both = place.at(i).string();
    const std::size_t space = both.find(' ');
    if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
      place.at(i).refuse("is not two tokens with a space between them");
    }
    add_merge(place, i, both.substr(0, space), both.substr(space + 1));
  }
}

void BpeModel::add_merge(const JsonPlace& place,
                         std::size_t rank,
                         std::string_view l,
                         std::string_view r) {
  const std::string merged =
      std::string(l) + std::string(r.substr(std::min(prefix_.size(), r.size())));
  const auto left = vocabulary_.find(l);
  const auto right = vocabulary_.find(r);
  const auto id = vocabulary_.find(merged);
  if (!left.has_value() || !right.has_value() || !id.has_value()) {
    place.at(rank).refuse("token \"{}\" is not in the vocabulary",
                          !left.has_value()    ? l
                          : !right.has_value() ? r
                                               : std::string_view(merged));
  }
  merges_.add(*left, *right, {.rank = static_cast<std::int32_t>(rank), .id = *id});
}

void BpeModel::encode(std::string_view word, std::vector<TokenId>& out) const {
  if (word.size() > Cache::kMaxWord) {
    encode_uncached(word, out);
    return;
  }
  if (cache_->find(word, out)) {
    return;
  }
  const std::size_t before = out.size();
  encode_uncached(word, out);
  cache_->insert(word, {out.begin() + static_cast<std::ptrdiff_t>(before), out.end()});
}

void BpeModel::encode_uncached(std::string_view word, std::vector<TokenId>& out) const {
  if (ignore_merges_) {
    const auto id = gives_bytes_ ? vocabulary_.find(to_byte_level(word)) : vocabulary_.find(word);
    if (id.has_value()) {
      out.push_back(*id);
      return;
    }
  }
  std::vector<TokenId> symbols;
  symbols.reserve(word.size());
  if (gives_bytes_ && prefix_.empty() && suffix_.empty()) {
    bytes_to_symbols(word, symbols);
  } else {
    characters_to_symbols(gives_bytes_ ? to_byte_level(word) : std::string(word), symbols);
  }
  merge_symbols(merges_, symbols);
  out.insert(out.end(), symbols.begin(), symbols.end());
}

void BpeModel::bytes_to_symbols(std::string_view word, std::vector<TokenId>& out) const {
  for (const char c : word) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      out.push_back(id);
    } else if (unknown_.has_value() &&
               !(fuse_unknown_ && !out.empty() && out.back() == *unknown_)) {
      out.push_back(*unknown_);  // without an unknown token such a byte is dropped, as everywhere
    }
  }
}

void BpeModel::characters_to_symbols(std::string_view word, std::vector<TokenId>& out) const {
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = decode_utf8(word, at).length;
    const bool last = at + length == word.size();
    const std::string_view character = word.substr(at, length);
    std::optional<TokenId> id;
    if ((at == 0 || prefix_.empty()) && (!last || suffix_.empty())) {
      id = vocabulary_.find(character);
    } else {
      id = vocabulary_.find((at == 0 ? "" : prefix_) + std::string(character) +
                            (last ? suffix_ : ""));
    }
    at += length;
    if (id.has_value()) {
      out.push_back(*id);
    } else if (byte_fallback_ && bytes_of_unknown(character, out)) {
      after_unknown = false;
      continue;
    } else if (unknown_.has_value() && !(fuse_unknown_ && after_unknown)) {
      out.push_back(*unknown_);
    }
    after_unknown = !id.has_value();
  }
}

bool BpeModel::bytes_of_unknown(std::string_view character, std::vector<TokenId>& out) const {
  const auto id = [this](char c) { return byte_ids_[static_cast<unsigned char>(c)]; };
  if (!std::ranges::all_of(character, [&](char c) { return id(c) >= 0; })) {
    return false;
  }
  std::ranges::transform(character, std::back_inserter(out), id);
  return true;
}

}  // namespace tandem::text
