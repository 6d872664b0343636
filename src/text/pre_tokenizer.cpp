#include "text/pre_tokenizer.h"

#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

using Behavior = SplitRule::Behavior;

// Rust's \w+|[^\w\s]+, spelled out because PCRE2's \w is another set.
constexpr const char* kWordsOrSymbols =
    R"([\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}]+|[^\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\s]+)";

Behavior read_behavior(const JsonPlace& config) {
  const std::string name = config.string_or("behavior", "Isolated");
  const std::pair<const char*, Behavior> names[] = {
      {"Removed", Behavior::kRemoved},
      {"Isolated", Behavior::kIsolated},
      {"MergedWithPrevious", Behavior::kMergedWithPrevious},
      {"MergedWithNext", Behavior::kMergedWithNext},
      {"Contiguous", Behavior::kContiguous},
  };
  for (const auto& [known, behavior] : names) {
    if (name == known) {
      return behavior;
    }
  }
  config.refuse("behavior \"{}\" is not supported", name);
}

template <class Predicate>
std::vector<ByteSpan> find_characters(std::string_view word, const Predicate& wanted) {
  std::vector<ByteSpan> found;
  for (std::size_t at = 0; at < word.size();) {
    const Decoded c = decode_utf8(word, at);
    if (wanted(c.code)) {
      found.push_back({at, at + c.length});
    }
    at += c.length;
  }
  return found;
}

std::vector<ByteSpan> find_string(std::string_view word, const std::string& wanted) {
  std::vector<ByteSpan> found;
  if (wanted.empty()) {
    return found;
  }
  for (std::size_t at = word.find(wanted); at != std::string_view::npos;
       at = word.find(wanted, at + wanted.size())) {
    found.push_back({at, at + wanted.size()});
  }
  return found;
}

struct Part {
  ByteSpan span;
  bool match = false;
};

// Matches and the gaps between them, covering the word.
std::vector<Part> parts_of(std::string_view word,
                           const std::vector<ByteSpan>& matches,
                           bool invert) {
  std::vector<Part> parts;
  std::size_t at = 0;
  for (const ByteSpan& match : matches) {
    if (match.begin > at) {
      parts.push_back({{at, match.begin}, invert});
    }
    parts.push_back({match, !invert});
    at = match.end;
  }
  if (at < word.size()) {
    parts.push_back({{at, word.size()}, invert});
  }
  return parts;
}

// Joins each match to the part before it, unless that one is a match too; with `contiguous`, each
// part to an equal one before it.
std::vector<ByteSpan> join_to_previous(const std::vector<Part>& parts, bool contiguous) {
  std::vector<ByteSpan> joined;
  bool last_match = false;
  for (const Part& part : parts) {
    const bool joins = contiguous ? part.match == last_match : part.match && !last_match;
    if (joins && !joined.empty()) {
      joined.back().end = part.span.end;
    } else {
      joined.push_back(part.span);
    }
    last_match = part.match;
  }
  return joined;
}

std::vector<ByteSpan> join_to_next(const std::vector<Part>& parts) {
  std::vector<ByteSpan> joined;
  bool pending = false;  // the last span is a match that waits for what follows
  for (const Part& part : parts) {
    if (pending && !part.match) {
      joined.back().end = part.span.end;
    } else {
      joined.push_back(part.span);
    }
    pending = part.match;
  }
  return joined;
}

}  // namespace

void cut_word(std::string_view word,
              const std::vector<ByteSpan>& matches,
              SplitRule rule,
              std::vector<std::string_view>& out) {
  const std::vector<Part> parts = parts_of(word, matches, rule.invert);
  std::vector<ByteSpan> spans;
  switch (rule.behavior) {
    case Behavior::kMergedWithPrevious:
    case Behavior::kContiguous:
      spans = join_to_previous(parts, rule.behavior == Behavior::kContiguous);
      break;
    case Behavior::kMergedWithNext:
      spans = join_to_next(parts);
      break;
    case Behavior::kRemoved:
    case Behavior::kIsolated:
      for (const Part& part : parts) {
        if (rule.behavior == Behavior::kIsolated || !part.match) {
          spans.push_back(part.span);
        }
      }
      break;
  }
  for (const ByteSpan& span : spans) {
    out.push_back(word.substr(span.begin, span.end - span.begin));
  }
}

PreTokenizer::PreTokenizer(const JsonPlace& config) {
  add(config);
  if (!steps_.empty() && std::holds_alternative<ByteMap>(steps_.back())) {
    steps_.pop_back();
    gives_bytes_ = true;
  }
}

void PreTokenizer::add(const JsonPlace& config) {
  const std::string& type = config.at("type").string();
  if (type == "Sequence") {
    const JsonPlace list = config.at("pretokenizers");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      add(list.at(i));
    }
  } else if (type == "ByteLevel") {
    add_byte_level(config);
  } else if (type == "Split") {
    steps_.emplace_back(read_split(config));
  } else if (type == "Digits") {
    const bool individual = config.flag("individual_digits", false);
    const auto behavior = individual ? Behavior::kIsolated : Behavior::kContiguous;
    steps_.emplace_back(Split{CharacterKind::kNumber, {.behavior = behavior}});
  } else if (type == "Metaspace") {
    steps_.emplace_back(read_metaspace(config));
  } else if (type == "Whitespace") {
    steps_.emplace_back(Split{Regex(kWordsOrSymbols, config.where()),
                              {.behavior = Behavior::kRemoved, .invert = true}});
  } else if (type == "WhitespaceSplit") {
    steps_.emplace_back(Split{CharacterKind::kWhiteSpace, {.behavior = Behavior::kRemoved}});
  } else if (type == "Punctuation") {
    steps_.emplace_back(Split{CharacterKind::kPunctuation, {.behavior = read_behavior(config)}});
  } else {
    config.refuse("pre-tokenizers of type \"{}\" are not supported", type);
  }
}

void PreTokenizer::add_byte_level(const JsonPlace& config) {
  if (config.flag("add_prefix_space", true)) {
    steps_.emplace_back(PrefixSpace{});
  }
  if (config.flag("use_regex", true)) {
    steps_.emplace_back(Split{SplitPattern::kGpt2, {}});
  }
  steps_.emplace_back(ByteMap{});
}

PreTokenizer::Split PreTokenizer::read_split(const JsonPlace& config) {
  const SplitRule rule{.behavior = read_behavior(config), .invert = config.flag("invert", false)};
  const JsonPlace pattern = config.at("pattern");
  if (pattern.has("String")) {
    return {pattern.at("String").string(), rule};
  }
  const JsonPlace regex = pattern.at("Regex");
  const auto known = known_pattern(regex.string());
  if (known.has_value() && rule.behavior == Behavior::kIsolated) {
    return {*known, rule};
  }
  return {Regex(regex.string(), regex.where()), rule};
}

PreTokenizer::Metaspace PreTokenizer::read_metaspace(const JsonPlace& config) {
  using Prepend = Metaspace::Prepend;
  Metaspace step;
  step.replacement = config.string_or("replacement", "\xE2\x96\x81");
  step.split = config.flag("split", true);
  const bool old_flag = config.flag("add_prefix_space", true);  // the older spelling
  const std::string scheme = config.string_or("prepend_scheme", old_flag ? "always" : "never");
  if (scheme != "always" && scheme != "first" && scheme != "never") {
    config.refuse("prepend_scheme \"{}\" is none of always, first, never", scheme);
  }
  step.prepend = scheme == "always"  ? Prepend::kAlways
                 : scheme == "first" ? Prepend::kFirst
                                     : Prepend::kNever;
  return step;
}

std::vector<ByteSpan> PreTokenizer::find(const Pattern& pattern, std::string_view word) {
  if (const auto* regex = std::get_if<Regex>(&pattern)) {
    return regex->find_all(word);
  }
  if (const auto* wanted = std::get_if<std::string>(&pattern)) {
    return find_string(word, *wanted);
  }
  switch (std::get<CharacterKind>(pattern)) {
    case CharacterKind::kNumber:
      return find_characters(word, [](char32_t c) { return class_of(c) == kNumber; });
    case CharacterKind::kWhiteSpace:
      return find_characters(word, [](char32_t c) { return class_of(c) == kSpace; });
    case CharacterKind::kPunctuation:
      break;
  }
  return find_characters(word, is_punctuation);
}

void PreTokenizer::apply_step(const Split& step, Words& words) {
  std::vector<std::string_view> out;
  out.reserve(2 * words.pieces.size());
  const auto* known = std::get_if<SplitPattern>(&step.pattern);
  for (const std::string_view word : words.pieces) {
    if (known != nullptr) {
      split_known(*known, word, out);
    } else {
      cut_word(word, find(step.pattern, word), step.rule, out);
    }
  }
  words.pieces = std::move(out);
}

void PreTokenizer::apply_step(PrefixSpace, Words& words) {
  for (std::string_view& word : words.pieces) {
    if (!word.starts_with(' ')) {
      word = words.owned.emplace_back(" " + std::string(word));
    }
  }
}

void PreTokenizer::apply_step(ByteMap, Words& words) {
  for (std::string_view& word : words.pieces) {
    word = words.owned.emplace_back(to_byte_level(word));
  }
}

void PreTokenizer::apply_step(const Metaspace& step, Words& words) {
  std::vector<std::string_view> out;
  bool first = words.starts_text;
  for (const std::string_view word : words.pieces) {
    std::string replaced;
    for (const char c : word) {
      replaced += c == ' ' ? step.replacement : std::string(1, c);
    }
    const bool prepend = step.prepend == Metaspace::Prepend::kAlways ||
                         (step.prepend == Metaspace::Prepend::kFirst && first);
    first = false;
    if (prepend && !replaced.starts_with(step.replacement)) {
      replaced.insert(0, step.replacement);
    }
    const std::string_view kept = words.owned.emplace_back(std::move(replaced));
    if (step.split) {
      const SplitRule rule{.behavior = Behavior::kMergedWithNext};
      cut_word(kept, find_string(kept, step.replacement), rule, out);
    } else {
      out.push_back(kept);
    }
  }
  words.pieces = std::move(out);
}

void PreTokenizer::apply(Words& words) const {
  for (const Step& step : steps_) {
    std::visit([&](const auto& s) { apply_step(s, words); }, step);
  }
}

}  // namespace tandem::text
