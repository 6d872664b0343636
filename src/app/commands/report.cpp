// tandem report: the static page of a run.
#include "app/report/report.h"

#include <cstdio>
#include <memory>

#include "app/commands.h"

namespace tandem::app {

void set_up_report(CommandLine& line) {
  const auto folder = std::make_shared<std::string>();
  line.need_word("RUN", *folder, "a run folder; report.html is written into it");
  line.run([folder] {
    std::printf("%s\n", write_report(*folder).c_str());
    return 0;
  });
}

}  // namespace tandem::app
