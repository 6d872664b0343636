// The "pre_tokenizer" part of a tokenizer.json: cuts a section of text into words.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/json_place.h"
#include "text/regex.h"
#include "text/split_patterns.h"

namespace tandem::text {

/// Words of a text, as views into it or into strings kept here (where a step changed the text).
struct Words {
  std::vector<std::string_view> pieces;
  std::deque<std::string> owned;  // a deque: views into its strings stay valid
  bool starts_text = true;        // whether the first word stands at the start of the whole text
};

/// What becomes of the matches of a split, and with `invert` of what lies between them.
struct SplitRule {
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;
};

/// Appends the parts of `word` that the rule makes of `matches` (in order, not overlapping).
void cut_word(std::string_view word,
              const std::vector<ByteSpan>& matches,
              SplitRule rule,
              std::vector<std::string_view>& out);

/// Immutable. An absent pre-tokenizer leaves the section as one word.
class PreTokenizer {
 public:
  PreTokenizer() = default;
  /// Throws UserError for a kind that is not supported, naming it.
  explicit PreTokenizer(const JsonPlace& config);

  void apply(Words& words) const;

  /// Whether the words are raw bytes that the model takes one by one: a ByteLevel step that comes
  /// last is left to the model, which saves a copy of every word.
  [[nodiscard]] bool gives_bytes() const { return gives_bytes_; }

 private:
  enum class CharacterKind { kNumber, kWhiteSpace, kPunctuation };
  using Pattern = std::variant<SplitPattern, Regex, std::string, CharacterKind>;
  struct Split {
    Pattern pattern;
    SplitRule rule;
  };
  struct PrefixSpace {};  // a leading space for each word that has none
  struct ByteMap {};      // bytes to their printable characters
  struct Metaspace {
    enum class Prepend { kAlways, kFirst, kNever };
    std::string replacement;
    Prepend prepend = Prepend::kAlways;
    bool split = true;
  };
  using Step = std::variant<Split, PrefixSpace, ByteMap, Metaspace>;

  void add(const JsonPlace& config);
  void add_byte_level(const JsonPlace& config);
  static Split read_split(const JsonPlace& config);
  static Metaspace read_metaspace(const JsonPlace& config);

  static std::vector<ByteSpan> find(const Pattern& pattern, std::string_view word);
  static void apply_step(const Split& step, Words& words);
  static void apply_step(PrefixSpace step, Words& words);
  static void apply_step(ByteMap step, Words& words);
  static void apply_step(const Metaspace& step, Words& words);

  std::vector<Step> steps_;
  bool gives_bytes_ = false;
};

}  // namespace tandem::text
