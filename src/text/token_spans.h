// Which part of a text each of its tokens stands for, and the loss mask of a rendered conversation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/regex.h"
#include "text/tokenizer.h"

namespace tandem::text {

/// For each id the bytes of `text` that it stands for. Tokens that share a character span all of
/// it. Nothing where the ids do not decode to the text, as after a normalization that changed it.
std::optional<std::vector<ByteSpan>> token_spans(const Tokenizer& tokenizer,
                                                 std::string_view text,
                                                 std::span<const TokenId> ids);

/// 1 for each token from the one that holds a span's first character to the one that holds its
/// last, as transformers marks what {% generation %} blocks made. `spans` are bytes of the text.
std::vector<std::uint8_t> mask_of_spans(
    std::span<const ByteSpan> tokens, std::span<const std::pair<std::int64_t, std::int64_t>> spans);

}  // namespace tandem::text
