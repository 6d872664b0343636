#include "app/report/report.h"

#include <cmath>
#include <regex>

#include <doctest/doctest.h>

#include "app/report/chart.h"
#include "app/report/html.h"
#include "base/atomic_file.h"
#include "base/error.h"
#include "support/temporary_folder.h"

namespace tandem::app {
namespace {

namespace fs = std::filesystem;

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++n;
  }
  return n;
}

// A run of `steps` steps with two completions files and a trace.
void make_run(const fs::path& folder, int steps) {
  fs::create_directories(folder / "completions");
  std::string metrics;
  std::string trace;
  for (int i = 1; i <= steps; ++i) {
    metrics += fmt::format(
        "{{\"step\": {0}, \"reward\": {1}, \"reward_std\": 0.1, \"loss\": 0.0, \"entropy\": 1.5, "
        "\"completions/mean_length\": 4, \"time/rollout_s\": 1.0, \"time/train_s\": 2.0, "
        "\"step_time\": 3.5, \"num_tokens\": {2}, \"numerics/logprob_gap_max\": 0.0, "
        "\"rewards/a/mean\": 0.5, \"rewards/b/mean\": 0.25{3}}}\n",
        i,
        0.1 * i,
        100 * i,
        i == 1 || i == steps ? ", \"val/all/acc/mean@1\": 0.5" : "");
    trace += fmt::format(
        "{{\"step\": {0}, \"rank\": 0, \"name\": \"rollout\", \"start_s\": {0}, \"end_s\": {0}.5, "
        "\"depth\": 0}}\n",
        i);
  }
  write_file_atomic(folder / "metrics.jsonl", metrics);
  write_file_atomic(folder / "trace.jsonl", trace);
  write_file_atomic(folder / "recipe.yaml", "seed: 1\n");
  write_file_atomic(folder / "run.json", "{\"version\": \"tandem 0.1\", \"seed\": 1}\n");
  for (const int step : {1, steps}) {
    write_file_atomic(
        folder / "completions" / fmt::format("step-{:06}.jsonl", step),
        fmt::format(
            "{{\"step\": {}, \"draw\": 0, \"prompt\": \"<b>2+2</b>\", \"completion\": "
            "\"</td><script>alert(1)</script>\", \"ground_truth\": \"4\", \"reward\": 0.5, "
            "\"advantage\": -1.25, \"finish_reason\": \"stop\", \"length\": 3, "
            "\"rewards\": {{\"a\": 1, \"b\": null}}, \"failures\": {{\"b\": \"crashed\"}}}}\n",
            step));
  }
}

TEST_CASE("html is escaped, broken UTF-8 and control characters are replaced") {
  CHECK(html_escape("<a href=\"x\" b='c'>&") == "&lt;a href=&quot;x&quot; b=&#39;c&#39;&gt;&amp;");
  CHECK(html_escape("\xC3\xA9\xE6\x97\xA5\n") == "\xC3\xA9\xE6\x97\xA5\n");
  CHECK(html_escape("a\xFF"
                    "b\x01\xE6\x97") ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(html_excerpt("abc", 3) == "abc");
  CHECK(html_excerpt("\xC3\xA9\xC3\xA9", 3).starts_with("\xC3\xA9<span"));
}

TEST_CASE("numbers for people have four digits at most") {
  CHECK(short_number(0.8166666) == "0.817");
  CHECK(short_number(1234.4) == "1234");
  CHECK(short_number(123456) == "123k");
  CHECK(short_number(2.5e6) == "2.5M");
  CHECK(short_number(0) == "0");
  CHECK(short_number(std::nan("")) == "-");
}

TEST_CASE("ticks are round and enclose the data, also of equal, negative and tiny values") {
  CHECK(round_ticks(0, 1, 4) == std::vector<double>{0, 0.5, 1});
  for (const auto& [low, high] :
       {std::pair{-3.2, 7.1}, std::pair{1e-9, 3e-9}, std::pair{0.0, 1e12}}) {
    const auto ticks = round_ticks(low, high, 4);
    CHECK(ticks.front() <= low);
    CHECK(ticks.back() >= high * (1 - 1e-9));
    CHECK(ticks.size() <= 8);
  }
  CHECK(round_ticks(2, 2, 4).size() >= 3);
  CHECK(round_ticks(0, 0, 4).size() >= 3);
}

TEST_CASE("a long series is averaged to 400 points, an empty chart is left out") {
  Series series{"s", {}, {}, {}, false};
  for (int i = 0; i < 5000; ++i) {
    series.x.push_back(i);
    series.y.push_back(1);
  }
  CHECK(count(line_chart({"t", "", {series}, {}}), "class=hit") <= 400);
  CHECK(line_chart({"t", "", {Series{}}, {}}).empty());
  CHECK(stacked_chart({"t", "", {}, {}}).empty());
  CHECK(span_chart({}).empty());
}

TEST_CASE("the page has curves, completions, times and settings, and nothing from outside") {
  const test::TemporaryFolder folder;
  make_run(folder.path(), 12);
  const fs::path file = write_report(folder.path());
  CHECK(file.filename() == "report.html");
  const std::string page = read_file(file);
  for (const char* title : {"Reward",
                            "Entropy",
                            "Completion length",
                            "Loss",
                            "Where the time goes",
                            "Reward by function",
                            "Validation",
                            "Parts of a step",
                            "Spans of the last steps"}) {
    CAPTURE(title);
    CHECK(page.find(fmt::format("<h3>{}", title)) != std::string::npos);
  }
  CHECK(page.find("&lt;/td&gt;&lt;script&gt;alert(1)") != std::string::npos);
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("b failed: crashed") != std::string::npos);
  CHECK(page.find("seed: 1") != std::string::npos);
  CHECK(page.find("0:42") != std::string::npos);  // 12 steps of 3.5 s
  CHECK_FALSE(std::regex_search(page, std::regex("(src|href)=|url\\(|@import|https?:")));
  CHECK(page.find("nan") == std::string::npos);
  CHECK(count(page, "<details") == 4);
}

TEST_CASE("a run in progress and a metrics file with broken lines give a page that says so") {
  const test::TemporaryFolder folder;
  make_run(folder.path(), 3);
  const std::string metrics = read_file(folder / "metrics.jsonl");
  write_file_atomic(
      folder / "metrics.jsonl",
      "nonsense\n" + metrics + "{\"step\": 4, \"reward\": \"NaN\"}\n{\"step\": 5, \"rew");
  const RunData run = read_run(folder.path());
  CHECK(run.metrics.size() == 4);
  CHECK(run.notes.size() == 2);
  const std::string page = report_html(run);
  CHECK(page.find("metrics.jsonl: 2 lines could not be read and are left out") !=
        std::string::npos);
  CHECK(page.find("1 values are not finite") != std::string::npos);
  write_file_atomic(folder / "metrics.jsonl", "");
  CHECK(report_html(read_run(folder.path())).find("No step has ended yet") != std::string::npos);
  fs::remove(folder / "metrics.jsonl");
  CHECK(report_html(read_run(folder.path())).find("No step has ended yet") != std::string::npos);
}

TEST_CASE("no folder, another folder and an unwritable one are errors that name it") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_AS(write_report("no/such/run"), UserError);
  CHECK_THROWS_AS(write_report(folder.path()), UserError);
  write_file_atomic(folder / "run.json", "broken");
  CHECK_THROWS_AS(read_run(folder.path()), UserError);
  write_file_atomic(folder / "recipe.yaml", "");
  CHECK(read_run(folder.path()).notes.size() == 2);
}

TEST_CASE("of many completions files the first, the last and some between are shown") {
  const test::TemporaryFolder folder;
  make_run(folder.path(), 2);
  for (int step = 3; step <= 40; ++step) {
    fs::copy_file(folder / "completions/step-000002.jsonl",
                  folder.path() / "completions" / fmt::format("step-{:06}.jsonl", step));
  }
  CHECK(read_run(folder.path()).completions.size() == 6);
  CHECK(read_run(folder.path()).completions.front().step == 1);
}

}  // namespace
}  // namespace tandem::app
