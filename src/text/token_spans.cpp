#include "text/token_spans.h"

#include <algorithm>
#include <string>

#include "text/detokenizer.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

// Index of the first token that reaches beyond `at`, the position of a character's first byte.
std::size_t first_beyond(std::span<const ByteSpan> tokens, std::size_t at) {
  const auto found = std::ranges::find_if(tokens, [at](const ByteSpan& t) { return t.end > at; });
  return static_cast<std::size_t>(found - tokens.begin());
}

}  // namespace

std::optional<std::vector<ByteSpan>> token_spans(const Tokenizer& tokenizer,
                                                 std::string_view text,
                                                 std::span<const TokenId> ids) {
  Detokenizer detokenizer(tokenizer, false);
  std::string decoded;
  std::vector<ByteSpan> spans;
  std::size_t waiting = 0;  // the first token whose characters are not complete yet
  const auto settle = [&](const std::string& delta) {
    decoded += delta;
    if (!delta.empty()) {
      for (; waiting + 1 < spans.size(); ++waiting) {
        spans[waiting].end = spans[waiting].begin + decode_utf8(delta, 0).length;
      }
      if (waiting < spans.size()) {
        spans[waiting++].end = decoded.size();
      }
    }
  };
  for (const TokenId id : ids) {
    spans.push_back({decoded.size(), decoded.size()});
    settle(detokenizer.push(id));
  }
  settle(detokenizer.finish());
  return decoded == text ? std::optional(std::move(spans)) : std::nullopt;
}

std::vector<std::uint8_t> mask_of_spans(
    std::span<const ByteSpan> tokens,
    std::span<const std::pair<std::int64_t, std::int64_t>> spans) {
  std::vector<std::uint8_t> mask(tokens.size(), 0);
  for (const auto& [begin, end] : spans) {
    if (begin >= end) {
      continue;
    }
    const std::size_t first = first_beyond(tokens, static_cast<std::size_t>(begin));
    const std::size_t last = first_beyond(tokens, static_cast<std::size_t>(end) - 1);
    for (std::size_t i = first; i < std::min(last + 1, tokens.size()); ++i) {
      mask[i] = 1;
    }
  }
  return mask;
}

}  // namespace tandem::text
