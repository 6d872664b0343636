#include "app/report/report_charts.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "app/report/chart.h"
#include "app/report/html.h"
#include "app/report/trace.h"

namespace tandem::app {
namespace {

constexpr std::int64_t kTracedSteps = 4;  // drawn over time

Series series_of(const RunData& run, const std::string& metric, const std::string& name) {
  Series series;
  series.name = name;
  for (const MetricsRow& row : run.metrics) {
    if (const auto found = row.values.find(metric); found != row.values.end()) {
      series.x.push_back(static_cast<double>(row.step));
      series.y.push_back(found->second);
    }
  }
  return series;
}

// A series that has a value, 0 where it is missing, at every step that has `anchor`.
Series filled_series(const RunData& run, const std::string& metric, const std::string& anchor) {
  Series series;
  for (const MetricsRow& row : run.metrics) {
    if (row.values.count(anchor) == 1) {
      const auto found = row.values.find(metric);
      series.x.push_back(static_cast<double>(row.step));
      series.y.push_back(found == row.values.end() ? 0.0 : found->second);
    }
  }
  return series;
}

// All metrics "PREFIX...SUFFIX", in order.
std::vector<std::string> metrics_like(const RunData& run,
                                      const std::string& prefix,
                                      const std::string& suffix) {
  std::set<std::string> names;
  for (const MetricsRow& row : run.metrics) {
    for (const auto& [name, value] : row.values) {
      if (name.starts_with(prefix) && name.ends_with(suffix) &&
          name.size() > prefix.size() + suffix.size()) {
        names.insert(name);
      }
    }
  }
  return {names.begin(), names.end()};
}

std::string reward_chart(const RunData& run) {
  Chart chart{"Reward", "mean, band: spread within a group", {}, {}};
  Series reward = series_of(run, "reward", "reward");
  const Series spread = series_of(run, "reward_std", "");
  if (spread.x == reward.x) {
    reward.spread = spread.y;
  }
  chart.series.push_back(reward);
  return line_chart(chart);
}

std::string named_rewards_chart(const RunData& run) {
  Chart chart{"Reward by function", "mean", {}, {}};
  for (const std::string& name : metrics_like(run, "rewards/", "/mean")) {
    chart.series.push_back(series_of(run, name, name.substr(8, name.size() - 8 - 5)));
  }
  return chart.series.size() > 1 ? line_chart(chart) : "";
}

std::string validation_chart(const RunData& run) {
  std::vector<std::string> names = metrics_like(run, "val/", "");
  const auto is_accuracy = [](const std::string& name) {
    return name.find("/acc/") != std::string::npos;
  };
  if (std::any_of(names.begin(), names.end(), is_accuracy)) {  // else rewards are all there is
    std::erase_if(names, [&](const std::string& name) { return !is_accuracy(name); });
  }
  Chart chart{"Validation", "", {}, 0.0};
  for (const std::string& name : names) {
    Series series = series_of(run, name, name.substr(4));
    series.dots = true;
    chart.series.push_back(series);
  }
  return line_chart(chart);
}

struct Line {
  const char* metric;
  const char* name;
};

std::string chart_of(const RunData& run,
                     const std::string& title,
                     const std::string& unit,
                     const std::vector<Line>& lines) {
  Chart chart{title, unit, {}, 0.0};
  for (const Line& line : lines) {
    chart.series.push_back(series_of(run, line.metric, line.name));
  }
  return line_chart(chart);
}

std::string times_chart(const RunData& run) {
  Chart chart{"Where the time goes", "seconds a step", {}, {}};
  for (const std::string& name : metrics_like(run, "time/", "_s")) {
    Series series = filled_series(run, name, "step_time");
    series.name = name.substr(5, name.size() - 5 - 2);
    const bool any = std::any_of(series.y.begin(), series.y.end(), [](double y) { return y > 0; });
    if (any) {
      chart.series.push_back(series);
    }
  }
  return chart.series.empty() ? chart_of(run, "Time of a step", "seconds", {{"step_time", "step"}})
                              : stacked_chart(chart);
}

// A table of what a step is made of, each part with a bar as long as its share.
std::string parts_card(const RunData& run) {
  const auto parts = parts_of_steps(run.trace);
  if (parts.empty() || run.metrics.empty()) {
    return "";
  }
  std::string rows;
  for (const PartOfStep& part : parts) {
    rows += fmt::format(
        "<tr><td style=\"padding-left:{}px\">{}</td><td class=number>{}</td><td "
        "class=number>{:.1f} "
        "%</td><td class=bar><i style=\"width:{:.1f}%\"></i></td></tr>\n",
        12 + 16 * part.depth,
        html_escape(part.name),
        short_number(part.seconds),
        100 * part.share,
        100 * part.share);
  }
  return "<div class=chart><h3>Parts of a step <span class=unit>all steps</span></h3><table>"
         "<tr><th>part</th><th class=number>seconds</th><th "
         "class=number>share</th><th></th></tr>\n" +
         rows + "</table></div>\n";
}

std::string section(const std::string& title, const std::string& charts) {
  return charts.empty() ? "" : "<h2>" + title + "</h2>\n<div class=charts>\n" + charts + "</div>\n";
}

}  // namespace

std::string charts_html(const RunData& run) {
  const std::string learning = reward_chart(run) + named_rewards_chart(run) +
                               validation_chart(run) +
                               chart_of(run, "Entropy", "nats a token", {{"entropy", "entropy"}}) +
                               chart_of(run,
                                        "Completion length",
                                        "tokens",
                                        {{"completions/mean_length", "mean"},
                                         {"completions/min_length", "shortest"},
                                         {"completions/max_length", "longest"}}) +
                               chart_of(run,
                                        "Shares",
                                        "of completions",
                                        {{"completions/clipped_ratio", "cut at the limit"},
                                         {"frac_reward_zero_std", "in groups of equal rewards"}});
  const std::string optimization =
      chart_of(run, "Loss", "", {{"loss", "loss"}}) +
      chart_of(run, "Gradient norm", "before clipping", {{"grad_norm", "norm"}}) +
      chart_of(run, "Learning rate", "", {{"learning_rate", "rate"}}) +
      chart_of(run,
               "Clipped tokens",
               "share",
               {{"clip_ratio/low_mean", "below"}, {"clip_ratio/high_mean", "above"}}) +
      chart_of(run, "KL to the reference", "nats a token", {{"kl", "kl"}});
  const std::string speed =
      times_chart(run) +
      chart_of(run,
               "Throughput",
               "tokens a second",
               {{"rollout/tokens_per_s", "sampled"}, {"train/tokens_per_s", "trained"}}) +
      parts_card(run) + span_chart(last_steps(run.trace, kTracedSteps));
  return section("Learning", learning) + section("Optimization", optimization) +
         section("Speed", speed);
}

}  // namespace tandem::app
