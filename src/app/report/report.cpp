#include "app/report/report.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "app/console.h"
#include "app/report/html.h"
#include "app/report/report_charts.h"
#include "base/atomic_file.h"

namespace tandem::app {
namespace {

constexpr std::size_t kMaxTextBytes = 4000;

struct Tile {
  std::string value;
  std::string label;
};

// The mean of `name` over the metrics rows [begin, end) that have it.
std::optional<double> mean_of(const RunData& run,
                              const std::string& name,
                              std::size_t begin,
                              std::size_t end) {
  double sum = 0;
  double count = 0;
  for (std::size_t i = begin; i < std::min(end, run.metrics.size()); ++i) {
    const auto found = run.metrics[i].values.find(name);
    if (found != run.metrics[i].values.end()) {
      sum += found->second;
      ++count;
    }
  }
  return count > 0 ? std::optional(sum / count) : std::nullopt;
}

// "0.02 -> 0.81" of the first and the last rows that have `name`.
std::optional<std::string> from_to(const RunData& run, const std::string& name, std::size_t rows) {
  const std::size_t size = run.metrics.size();
  const auto first = mean_of(run, name, 0, rows);
  const auto last = mean_of(run, name, size - std::min(size, rows), size);
  if (!first || !last) {
    return std::nullopt;
  }
  return fmt::format("<i>{} &rarr;</i> {}", short_number(*first), short_number(*last));
}

std::optional<Tile> validation_tile(const RunData& run) {
  std::string name;
  for (const MetricsRow& row : run.metrics) {
    for (const auto& [key, value] : row.values) {
      const bool accuracy = key.starts_with("val/") && key.find("/acc/mean@") != std::string::npos;
      if (accuracy && (name.empty() || key.starts_with("val/all/"))) {
        name = key;
      }
    }
  }
  std::vector<double> values;
  for (const MetricsRow& row : run.metrics) {
    if (const auto found = row.values.find(name); found != row.values.end()) {
      values.push_back(found->second);
    }
  }
  if (values.empty()) {
    return std::nullopt;
  }
  return Tile{
      fmt::format("<i>{} &rarr;</i> {}", short_number(values.front()), short_number(values.back())),
      "validation accuracy, first to last"};
}

double largest(const RunData& run, const std::string& name) {
  double value = 0;
  for (const MetricsRow& row : run.metrics) {
    if (const auto found = row.values.find(name); found != row.values.end()) {
      value = std::max(value, std::abs(found->second));
    }
  }
  return value;
}

double sum_of(const RunData& run, const std::string& name) {
  double value = 0;
  for (const MetricsRow& row : run.metrics) {
    if (const auto found = row.values.find(name); found != row.values.end()) {
      value += found->second;
    }
  }
  return value;
}

std::vector<Tile> tiles_of(const RunData& run) {
  std::vector<Tile> tiles;
  const MetricsRow& last = run.metrics.back();
  tiles.push_back({std::to_string(last.step), "last step"});
  const std::size_t rows =
      std::min<std::size_t>(5, std::max<std::size_t>(1, run.metrics.size() / 2));
  if (const auto text = from_to(run, "reward", rows)) {
    tiles.push_back({*text, fmt::format("mean reward, first and last {} steps", rows)});
  } else if (const auto loss = from_to(run, "loss", rows)) {
    tiles.push_back({*loss, fmt::format("loss, first and last {} steps", rows)});
  }
  if (const auto tile = validation_tile(run)) {
    tiles.push_back(*tile);
  }
  if (const double seconds = sum_of(run, "step_time"); seconds > 0) {
    tiles.push_back({duration_text(seconds), "in steps"});
  }
  if (const double tokens = largest(run, "num_tokens"); tokens > 0) {
    tiles.push_back({short_number(tokens), "tokens"});
  }
  if (const double bytes = largest(run, "memory/peak_rss_bytes"); bytes > 0) {
    tiles.push_back({fmt::format("{:.2f} GiB", bytes / 1073741824.0), "peak memory"});
  }
  if (last.values.count("numerics/logprob_gap_max") == 1) {
    const double gap = largest(run, "numerics/logprob_gap_max");
    tiles.push_back({fmt::format("<span class={}>{}</span>",
                                 gap == 0 ? "good" : "bad",
                                 gap == 0 ? "0" : short_number(gap)),
                     "largest gap between sampler and trainer"});
  }
  return tiles;
}

std::string tiles_html(const RunData& run) {
  std::string out = "<div class=tiles>\n";
  for (const Tile& tile : tiles_of(run)) {
    out += fmt::format("<div class=tile><b>{}</b><span>{}</span></div>\n", tile.value, tile.label);
  }
  return out + "</div>\n";
}

std::string number_cell(const std::optional<double>& value) {
  return fmt::format("<td class=number>{}</td>", value ? short_number(*value) : "-");
}

// A cell that spans the rows of its group.
std::string group_cell(const std::string& text, std::size_t num_rows) {
  return fmt::format(
      "<td class=text rowspan={}>{}</td>", num_rows, html_excerpt(text, kMaxTextBytes));
}

std::size_t group_size(const std::vector<CompletionRow>& rows, std::size_t first) {
  std::size_t end = first;
  while (end < rows.size() && rows[end].draw == rows[first].draw) {
    ++end;
  }
  return end - first;
}

std::string completions_html(const CompletionsOfStep& step) {
  std::string rows;
  std::size_t next_group = 0;
  for (std::size_t i = 0; i < step.rows.size(); ++i) {
    const CompletionRow& row = step.rows[i];
    std::string prompt;
    std::string answer;
    if (i == next_group) {
      const std::size_t size = group_size(step.rows, i);
      prompt = group_cell(row.prompt, size);
      answer = group_cell(row.ground_truth, size);
      next_group += size;
    }
    rows += fmt::format(
        "<tr{}>{}{}<td class=text>{}</td>{}{}<td class=number>{}</td><td>{}</td><td>{}</td></tr>\n",
        prompt.empty() ? "" : " class=first",
        prompt,
        answer,
        html_excerpt(row.completion, kMaxTextBytes),
        number_cell(row.reward),
        number_cell(row.advantage),
        row.length,
        html_escape(row.finish_reason),
        html_excerpt(row.rewards, kMaxTextBytes));
  }
  return "<div class=scroll><table><tr><th>prompt</th><th>right answer</th><th>completion</th>"
         "<th class=number>reward</th><th class=number>advantage</th><th class=number>tokens</th>"
         "<th>ended by</th><th>rewards</th></tr>\n" +
         rows + "</table></div>";
}

std::string all_completions_html(const RunData& run) {
  if (run.completions.empty()) {
    return "";
  }
  std::string out = "<h2>Sampled completions</h2>\n";
  for (std::size_t i = 0; i < run.completions.size(); ++i) {
    const CompletionsOfStep& step = run.completions[i];
    double sum = 0;
    double count = 0;
    for (const CompletionRow& row : step.rows) {
      sum += row.reward.value_or(0);
      count += row.reward ? 1 : 0;
    }
    out += fmt::format("<details{}><summary>Step {}<span>{} shown{}</span></summary>{}</details>\n",
                       i + 1 == run.completions.size() ? " open" : "",
                       step.step,
                       step.rows.size(),
                       count > 0 ? fmt::format(", mean reward {}", short_number(sum / count)) : "",
                       completions_html(step));
  }
  return out;
}

std::string settings_html(const RunData& run) {
  std::string out;
  if (!run.facts.empty()) {
    out += "<details><summary>Machine and version</summary><div class=scroll><table>\n";
    for (const auto& [name, value] : run.facts) {
      out += fmt::format(
          "<tr><td>{}</td><td class=text>{}</td></tr>\n", html_escape(name), html_escape(value));
    }
    out += "</table></div></details>\n";
  }
  if (!run.recipe.empty()) {
    out += fmt::format("<details><summary>Effective recipe</summary><pre>{}</pre></details>\n",
                       html_escape(run.recipe));
  }
  return out.empty() ? "" : "<h2>Settings</h2>\n" + out;
}

}  // namespace

std::string report_html(const RunData& run) {
  std::string started;
  for (const auto& [name, value] : run.facts) {
    started = name == "started" ? value : started;
  }
  std::string body =
      fmt::format("<header><div class=kind>Tandem run</div><h1>{}</h1><p>{}</p></header>\n",
                  html_escape(run.name),
                  started.empty() ? "" : "started " + html_escape(started));
  for (const std::string& note : run.notes) {
    body += fmt::format("<p class=note>{}</p>\n", html_escape(note));
  }
  if (!run.metrics.empty()) {
    body += tiles_html(run) + charts_html(run);
  }
  body += all_completions_html(run) + settings_html(run);
  return html_page(run.name, body);
}

std::filesystem::path write_report(const std::filesystem::path& folder) {
  const auto path = folder / "report.html";
  write_file_atomic(path, report_html(read_run(folder)));
  return path;
}

}  // namespace tandem::app
