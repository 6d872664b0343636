// Rows of a JSONL file as prompts that are ready to be sampled from.
#pragma once

#include <string>
#include <vector>

#include "data/row_reader.h"
#include "data/text_model.h"
#include "protocol/trajectory.h"

namespace tandem::data {

struct PromptSource {
  std::string path;
  std::vector<Prompt> prompts;  // in the file's order
  LoadReport report;
};

/// Reads verl, TRL and plain rows from `file` and renders their prompts.
///
/// Empty prompts, rows whose answer is null, and by `config.overlong` too long ones are left out
/// and counted. Throws UserError with file and line for broken rows, and when no row is left.
PromptSource load_prompts(const std::string& file, const RowConfig& config, const TextModel& model);

}  // namespace tandem::data
