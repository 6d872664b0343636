// tandem report: the static page of a run, and its spans for trace viewers.
#include "app/report/report.h"

#include <cstdio>
#include <memory>

#include "app/commands.h"
#include "app/report/trace.h"
#include "base/atomic_file.h"
#include "base/error.h"

namespace tandem::app {
namespace {

struct ReportOptions {
  std::string folder;
  std::string chrome_trace;
};

int write_outputs(const ReportOptions& options) {
  std::printf("%s\n", write_report(options.folder).c_str());
  if (!options.chrome_trace.empty()) {
    const RunData run = read_run(options.folder);
    if (run.trace.empty()) {
      fail<UserError>("{}: has no spans, trace.jsonl is missing or empty", options.folder);
    }
    write_file_atomic(options.chrome_trace, chrome_trace(run.name, run.trace));
    std::printf("%s\n", options.chrome_trace.c_str());
  }
  return 0;
}

}  // namespace

void set_up_report(CommandLine& line) {
  const auto options = std::make_shared<ReportOptions>();
  line.need_word("RUN", options->folder, "a run folder; report.html is written into it");
  line.add("--chrome-trace",
           options->chrome_trace,
           "also write the spans to this file, for chrome://tracing or Perfetto");
  line.run([options] { return write_outputs(*options); });
}

}  // namespace tandem::app
