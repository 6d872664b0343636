// report.html: a run on one page that needs no network and no other file.
#pragma once

#include <filesystem>
#include <string>

#include "app/report/run_data.h"

namespace tandem::app {

/// The page.
std::string report_html(const RunData& run);

/// Reads the run folder and writes report.html into it, whole or not at all. Returns its path.
/// Throws UserError when the folder is none of a run, MachineError when it cannot be written.
std::filesystem::path write_report(const std::filesystem::path& folder);

}  // namespace tandem::app
