// The spans of a run: their places in time, their shares of a step, and Chrome's trace format.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "app/report/run_data.h"

namespace tandem::app {

/// Where a span is drawn. A span that stands for several repeats is as long as they are together,
/// so those beside it are moved: they follow each other and stay within the outer one.
struct SpanPlace {
  double start_s = 0;
  double end_s = 0;
};
std::vector<SpanPlace> places_of(std::span<const TraceSpan> spans);

/// The spans of the last `count` steps.
std::vector<TraceSpan> last_steps(std::span<const TraceSpan> spans, std::int64_t count);

/// One part of a step over a whole run.
struct PartOfStep {
  std::string name;
  int depth = 0;       // 0 for those directly in a step, and those outside of any
  double seconds = 0;  // of all steps together
  double share = 0;    // of all spans without an outer one
};

/// The parts in the order of their first span, each before those within it. A part "step" is
/// replaced by what it holds; what no inner part covers is "other".
std::vector<PartOfStep> parts_of_steps(std::span<const TraceSpan> spans);

/// The spans as chrome://tracing and Perfetto read them: one JSON object, a complete event each,
/// in microseconds, ranks as processes.
std::string chrome_trace(const std::string& run_name, std::span<const TraceSpan> spans);

}  // namespace tandem::app
