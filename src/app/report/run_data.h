// What a run folder holds, read for a report; a run in progress or cut short is read as far as it
// is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tandem::app {

/// One line of metrics.jsonl. Values that are not finite are left out.
struct MetricsRow {
  std::int64_t step = 0;
  std::map<std::string, double> values;
};

/// One sampled completion of completions/step-NNNNNN.jsonl.
struct CompletionRow {
  std::int64_t draw = 0;
  std::string prompt;
  std::string completion;
  std::string ground_truth;
  std::optional<double> reward;
  std::optional<double> advantage;
  std::string finish_reason;
  std::int64_t length = 0;
  std::string rewards;  // "accuracy 1, brevity failed: ..."
};

struct CompletionsOfStep {
  std::int64_t step = 0;
  std::vector<CompletionRow> rows;
};

/// One line of trace.jsonl: a part of a step, after the part that it is in. See SpanRecord.
struct TraceSpan {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::string name;
  double start_s = 0;
  double end_s = 0;
  int depth = 0;
  double seconds = 0;
  std::int64_t count = 1;
};

struct RunData {
  std::string name;
  std::vector<MetricsRow> metrics;             // by step
  std::vector<CompletionsOfStep> completions;  // by step; the first, the last and some between
  std::vector<TraceSpan> trace;                // as they were written, by step
  std::vector<std::pair<std::string, std::string>> facts;  // of run.json
  std::string recipe;                                      // recipe.yaml
  std::vector<std::string> notes;  // what could not be read, for the reader of the report
};

/// Reads `folder`. Throws UserError when it is not there or has none of a run's files; a broken
/// line, as a killed process leaves it, becomes a note.
RunData read_run(const std::filesystem::path& folder);

}  // namespace tandem::app
