#include "text/decoder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/unicode.h"

namespace tandem::text {
namespace {

// The byte of a token "<0xNN>".
std::optional<char> fallback_byte(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token.back() != '>') {
    return std::nullopt;
  }
  unsigned value = 0;
  const char* end = token.data() + 5;
  const auto [stopped, error] = std::from_chars(token.data() + 3, end, value, 16);
  return error == std::errc() && stopped == end ? std::optional(static_cast<char>(value))
                                                : std::nullopt;
}

// Moves the complete characters of `held` to the result; an unfinished one at the end stays.
std::string take_complete(std::string& held) {
  std::string text;
  std::size_t at = 0;
  while (at < held.size()) {
    const Decoded c = decode_utf8(held, at);
    if (c.truncated) {
      break;
    }
    text += c.valid ? std::string_view(held).substr(at, c.length) : kReplacement;
    at += c.length;
  }
  held.erase(0, at);
  return text;
}

std::size_t count_trailing(std::string_view text, const std::string& content, std::size_t most) {
  std::size_t count = 0;
  while (count < most && text.ends_with(content)) {
    text.remove_suffix(content.size());
    ++count;
  }
  return count;
}

}  // namespace

Decoder::Decoder(const JsonPlace& config) {
  add(config);
}

void Decoder::add(const JsonPlace& config) {
  const std::string& type = config.at("type").string();
  if (type == "Sequence") {
    const JsonPlace list = config.at("decoders");
    for (std::size_t i = 0; i < list.array_size(); ++i) {
      add(list.at(i));
    }
  } else if (type == "ByteLevel") {
    steps_.emplace_back(ByteLevel{});
  } else if (type == "ByteFallback") {
    steps_.emplace_back(ByteFallback{});
  } else if (type == "Fuse") {
    steps_.emplace_back(Fuse{});
  } else if (type == "Strip") {
    const auto count = [&](const char* key) {
      return static_cast<std::size_t>(std::max<std::int64_t>(0, config.integer_or(key, 0)));
    };
    const std::string content = config.at("content").string();
    if (content.empty()) {
      config.at("content").refuse("is empty");
    }
    steps_.emplace_back(Strip{content, count("start"), count("stop")});
  } else if (type == "Replace") {
    steps_.emplace_back(Replacement(config));
  } else if (type == "Metaspace") {
    const bool old_flag = config.flag("add_prefix_space", true);
    const std::string scheme = config.string_or("prepend_scheme", old_flag ? "always" : "never");
    steps_.emplace_back(
        Metaspace{config.string_or("replacement", "\xE2\x96\x81"), scheme != "never"});
  } else if (type == "BPEDecoder") {
    steps_.emplace_back(Suffix{config.string_or("suffix", "</w>")});
  } else {
    config.refuse("decoders of type \"{}\" are not supported", type);
  }
}

DecodeStream::DecodeStream(const Decoder& decoder)
    : decoder_(&decoder), states_(decoder.steps().size()) {
  bool fused = false;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].fused = fused;
    const Decoder::Step& step = decoder.steps()[i];
    fused = fused || std::holds_alternative<Decoder::Fuse>(step) ||
            std::holds_alternative<Decoder::ByteLevel>(step);
  }
}

void DecodeStream::push(std::string_view token, std::string& out) {
  feed(0, token, out);
}

void DecodeStream::finish(std::string& out) {
  end(0, out);
}

void DecodeStream::feed(std::size_t step, std::string_view token, std::string& out) {
  if (step == states_.size()) {
    out += token;
    return;
  }
  std::visit([&](const auto& s) { run(s, step, token, out); }, decoder_->steps()[step]);
}

void DecodeStream::end(std::size_t step, std::string& out) {
  if (step == states_.size()) {
    return;
  }
  State& state = states_[step];
  const Decoder::Step& kind = decoder_->steps()[step];
  if (std::holds_alternative<Decoder::ByteFallback>(kind)) {
    flush_bytes(step, out);
  } else if (std::holds_alternative<Decoder::ByteLevel>(kind) && !state.held.empty()) {
    feed(step + 1, kReplacement, out);
  } else if (const auto* suffix = std::get_if<Decoder::Suffix>(&kind);
             suffix != nullptr && state.started) {
    // The last token loses its mark instead of turning it into a space.
    std::string last = state.held;
    for (std::size_t at = last.find(suffix->suffix); at != std::string::npos;
         at = last.find(suffix->suffix, at)) {
      last.erase(at, suffix->suffix.size());
    }
    feed(step + 1, last, out);
  }  // what Strip holds back is what it strips
  end(step + 1, out);
}

void DecodeStream::run(const Decoder::ByteLevel&,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  std::string& held = states_[step].held;
  const auto bytes = from_byte_level(token);
  held += bytes.has_value() ? *bytes : token;  // an added token need not be byte characters
  const std::string text = take_complete(held);
  if (!text.empty()) {
    feed(step + 1, text, out);
  }
}

void DecodeStream::run(const Decoder::ByteFallback&,
                       std::size_t step,
                       std::string_view t,
                       std::string& out) {
  // A run of byte tokens is a text only as a whole, so that it waits for its end.
  if (const auto byte = fallback_byte(t)) {
    states_[step].held += *byte;
    return;
  }
  flush_bytes(step, out);
  feed(step + 1, t, out);
}

void DecodeStream::flush_bytes(std::size_t step, std::string& out) {
  const std::string held = std::exchange(states_[step].held, {});
  if (held.empty()) {
    return;
  }
  if (is_valid_utf8(held)) {
    feed(step + 1, held, out);
    return;
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    feed(step + 1, kReplacement, out);
  }
}

void DecodeStream::run(const Decoder::Fuse&,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  feed(step + 1, token, out);
}

void DecodeStream::run(const Decoder::Strip& s,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  State& state = states_[step];
  if (!state.fused) {
    state = {};
  }
  while (!state.past_start && state.taken < s.start && token.starts_with(s.content)) {
    token.remove_prefix(s.content.size());
    ++state.taken;
  }
  if (token.empty() && state.fused) {
    return;
  }
  state.past_start = true;
  std::string text = std::exchange(state.held, {}) + std::string(token);
  const std::size_t cut = count_trailing(text, s.content, s.stop) * s.content.size();
  if (state.fused) {
    state.held = text.substr(text.size() - cut);  // stripped if nothing follows
  }
  text.resize(text.size() - cut);
  feed(step + 1, text, out);
}

void DecodeStream::run(const Replacement& s,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  feed(step + 1, s.apply(std::string(token)), out);
}

void DecodeStream::run(const Decoder::Metaspace& s,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  std::string text;
  bool first = !std::exchange(states_[step].started, true) && s.drop_first;
  for (std::size_t at = 0; at < token.size();) {
    const std::size_t length = decode_utf8(token, at).length;
    const std::string_view character = token.substr(at, length);
    if (character != s.replacement) {
      text += character;
    } else if (!first) {
      text += ' ';
    }
    at += length;
  }
  feed(step + 1, text, out);
}

void DecodeStream::run(const Decoder::Suffix& s,
                       std::size_t step,
                       std::string_view token,
                       std::string& out) {
  State& state = states_[step];
  if (std::exchange(state.started, true)) {
    std::string text = state.held;
    for (std::size_t at = text.find(s.suffix); at != std::string::npos;
         at = text.find(s.suffix, at + 1)) {
      text.replace(at, s.suffix.size(), " ");
    }
    state.held = token;
    feed(step + 1, text, out);
    return;
  }
  state.held = token;
}

void DecodeStream::run(const Decoder::SpaceBetween&,
                       std::size_t step,
                       std::string_view t,
                       std::string& out) {
  const bool between = std::exchange(states_[step].started, true);
  feed(step + 1, between ? " " + std::string(t) : std::string(t), out);
}

}  // namespace tandem::text
