// Which metrics of a run are drawn, and how they are grouped.
#pragma once

#include <string>

#include "app/report/run_data.h"

namespace tandem::app {

/// Sections of charts; what the run has no metric for is left out.
std::string charts_html(const RunData& run);

}  // namespace tandem::app
