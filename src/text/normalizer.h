// The "normalizer" part of a tokenizer.json: text to text, before anything is split.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "text/json_place.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace tandem::text {

/// Replaces each occurrence of a string or of a pattern's matches.
class Replacement {
 public:
  /// Reads {"pattern": {"String" or "Regex": ...}, "content": ...}.
  explicit Replacement(const JsonPlace& config);

  [[nodiscard]] std::string apply(const std::string& text) const;

 private:
  std::variant<std::string, Regex> pattern_;
  std::string content_;
};

/// Immutable. An absent normalizer is the empty sequence.
class Normalizer {
 public:
  Normalizer() = default;
  /// Throws UserError for a kind that is not supported, naming it.
  explicit Normalizer(const JsonPlace& config);

  /// Normalizes one section of valid UTF-8 between added tokens.
  [[nodiscard]] std::string apply(std::string text) const;

  [[nodiscard]] bool empty() const { return steps_.empty(); }

 private:
  struct Prepend {
    std::string prefix;
  };
  struct Strip {
    bool left = true;
    bool right = true;
  };
  struct Lowercase {};
  struct StripAccents {};
  using Step = std::variant<NormalForm, Prepend, Strip, Lowercase, StripAccents, Replacement>;

  static std::string apply_step(const Step& step, std::string text);
  void add(const JsonPlace& config);

  std::vector<Step> steps_;
};

}  // namespace tandem::text
