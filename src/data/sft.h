// Rows of a JSONL file as sequences to learn, with a mask of what is learnt.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/row_reader.h"
#include "data/text_model.h"
#include "protocol/trajectory.h"

namespace tandem::data {

struct SftSequence {
  std::string id;
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> mask;  // one entry an id: 1 where the model is to write it
};

struct SftSource {
  std::string path;
  std::vector<SftSequence> sequences;  // in the file's order
  LoadReport report;
};

/// Reads conversations ({"messages": [...]}) and prompts with completions (prompt + completion,
/// question + answer, messages + completion).
///
/// Each stretch that the model writes is tokenised by itself, behind the ids of what stood before:
/// the very ids that it is given and returns when it is sampled. Of an assistant's turn, what the
/// template puts behind the stop token is not learnt. Without a chat template the text is raw and a
/// stop token is put behind it. A sequence in which nothing is learnt counts as empty. Throws
/// UserError with file and line.
SftSource load_sft(const std::string& file, const RowConfig& config, const TextModel& model);

}  // namespace tandem::data
