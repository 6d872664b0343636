// A compiled PCRE2 pattern over UTF-8, with the meaning that tokenizer files give to \s.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tandem::text {

/// Bytes [begin, end) of a text.
struct ByteSpan {
  std::size_t begin = 0;
  std::size_t end = 0;

  bool operator==(const ByteSpan&) const = default;
};

/// Immutable; threads may match with one object at the same time.
class Regex {
 public:
  /// Throws UserError "WHERE: ..." for a pattern that PCRE2 refuses.
  Regex(const std::string& pattern, const std::string& where);
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

  /// All matches from left to right, empty ones left out. `text` is valid UTF-8.
  [[nodiscard]] std::vector<ByteSpan> find_all(std::string_view text) const;

 private:
  struct Code;
  std::unique_ptr<Code> code_;
};

/// Where PCRE2's \s and \S differ from the White_Space property (U+180E), spells the set out.
std::string spell_out_white_space(std::string_view pattern);

}  // namespace tandem::text
