// An opened model: weights, decoder, tokenizer, chat template, and what an export needs beside
// them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/checkpoint.h"
#include "model/decoder.h"
#include "model/weight_store.h"
#include "protocol/trajectory.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace tandem::app {

struct Session {
  std::unique_ptr<model::WeightStore> weights;
  std::unique_ptr<model::Decoder> decoder;
  std::optional<text::Tokenizer> tokenizer;         // none where the model has no files for it
  std::optional<text::ChatTemplate> chat_template;  // none where the tokenizer has none
  std::map<std::string, std::string> files;         // tokenizer files, for exports
  std::vector<TokenId> stop_ids;                    // all end-of-sequence ids
  std::int64_t num_ids = 0;                         // of the tokenizer, at most the vocabulary

  /// The tokenizer. Throws UserError, naming the model, where there is none.
  [[nodiscard]] const text::Tokenizer& need_tokenizer() const;

  std::string name;  // as the user gave it
};

struct SessionOptions {
  std::string dtype = "auto";      // auto: the file's (float16 becomes float32)
  std::int64_t max_positions = 0;  // tables are made for so many; 0: the model's, at most 32,768
};

/// Opens a model and loads its weights. Throws UserError for anything wrong with it.
Session open_session(const std::string& model, const SessionOptions& options);

/// A model with random weights: config.json and tokenizer files of `folder`, weights by `seed`.
Session init_session(const std::string& folder, std::uint64_t seed, const SessionOptions& options);

/// A second copy of the weights, frozen, with a decoder of its own: the reference of a KL term.
struct FrozenCopy {
  std::unique_ptr<model::WeightStore> weights;
  std::unique_ptr<model::Decoder> decoder;
};
FrozenCopy frozen_copy(const Session& session);

}  // namespace tandem::app
