// The "decoder" part of a tokenizer.json: tokens to text, one token at a time.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/json_place.h"
#include "text/normalizer.h"

namespace tandem::text {

/// Immutable description of the steps; DecodeStream runs them.
class Decoder {
 public:
  struct ByteLevel {};     // byte characters to bytes, broken UTF-8 to U+FFFD
  struct ByteFallback {};  // runs of <0xNN> to characters, a broken run to U+FFFD each
  struct Fuse {};          // all that follows is one token for the later steps
  struct Strip {
    std::string content;    // one character
    std::size_t start = 0;  // at most so many at a token's start
    std::size_t stop = 0;   // and at its end
  };
  struct Metaspace {
    std::string replacement;
    bool drop_first = true;  // the word mark that the encoder put in front
  };
  struct Suffix {
    std::string suffix;  // marks the end of a word: a space, but nothing after the last token
  };
  struct SpaceBetween {};  // no decoder in the file: tokens joined by spaces
  using Step = std::
      variant<ByteLevel, ByteFallback, Fuse, Strip, Replacement, Metaspace, Suffix, SpaceBetween>;

  Decoder() { steps_.emplace_back(SpaceBetween{}); }
  /// Throws UserError for a kind that is not supported, naming it.
  explicit Decoder(const JsonPlace& config);

  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

 private:
  void add(const JsonPlace& config);

  std::vector<Step> steps_;
};

/// The state of decoding one sequence. The concatenated output is the decoded text, wherever it was
/// read in between, and every part of it is valid UTF-8. Refers to the decoder.
class DecodeStream {
 public:
  explicit DecodeStream(const Decoder& decoder);

  /// Appends to `out` the text that is certain after this token.
  void push(std::string_view token, std::string& out);

  /// Appends what was held back; nothing may be pushed afterwards.
  void finish(std::string& out);

 private:
  struct State {
    std::string held;         // input of the step that waits for more
    std::size_t taken = 0;    // Strip: characters removed at the start
    bool started = false;     // something has come by
    bool fused = false;       // the input of this step is one endless token
    bool past_start = false;  // Strip: the start of a fused token is behind
  };

  void feed(std::size_t step, std::string_view token, std::string& out);
  void end(std::size_t step, std::string& out);

  void run(const Decoder::ByteLevel& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Decoder::ByteFallback& s, std::size_t step, std::string_view t, std::string& out);
  void run(const Decoder::Fuse& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Decoder::Strip& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Replacement& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Decoder::Metaspace& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Decoder::Suffix& s, std::size_t step, std::string_view token, std::string& out);
  void run(const Decoder::SpaceBetween& s, std::size_t step, std::string_view t, std::string& out);
  void flush_bytes(std::size_t step, std::string& out);

  const Decoder* decoder_;
  std::vector<State> states_;
};

}  // namespace tandem::text
