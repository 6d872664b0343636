#include "app/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <fmt/format.h>

#include "app/report/html.h"
#include "app/report/plot_area.h"
#include "app/report/trace.h"

namespace tandem::app {
namespace {

constexpr std::size_t kMaxPoints = 400;

// Neighbours averaged until at most kMaxPoints are left.
Series thinned(const Series& series) {
  if (series.x.size() <= kMaxPoints) {
    return series;
  }
  Series out{series.name, {}, {}, {}, series.dots};
  const std::size_t size = (series.x.size() + kMaxPoints - 1) / kMaxPoints;
  for (std::size_t begin = 0; begin < series.x.size(); begin += size) {
    const std::size_t end = std::min(begin + size, series.x.size());
    double x = 0;
    double y = 0;
    double spread = 0;
    for (std::size_t i = begin; i < end; ++i) {
      x += series.x[i];
      y += series.y[i];
      spread += series.spread.empty() ? 0.0 : series.spread[i];
    }
    const auto n = static_cast<double>(end - begin);
    out.x.push_back(x / n);
    out.y.push_back(y / n);
    if (!series.spread.empty()) {
      out.spread.push_back(spread / n);
    }
  }
  return out;
}

PlotArea area_of(const std::vector<Series>& all, const Chart& chart) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  PlotArea area{kInfinity, -kInfinity, kInfinity, -kInfinity};
  for (const Series& series : all) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      const double spread = series.spread.empty() ? 0.0 : series.spread[i];
      area.x_low = std::min(area.x_low, series.x[i]);
      area.x_high = std::max(area.x_high, series.x[i]);
      area.y_low = std::min(area.y_low, series.y[i] - spread);
      area.y_high = std::max(area.y_high, series.y[i] + spread);
    }
  }
  if (chart.lowest) {
    area.y_low = std::min(area.y_low, *chart.lowest);
  }
  if (area.x_low == area.x_high) {  // one step: in the middle
    area.x_low -= 1;
    area.x_high += 1;
  }
  return area;
}

std::string band(const Series& series, const PlotArea& area, const std::string& color) {
  if (series.spread.empty()) {
    return "";
  }
  std::string points;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    points +=
        fmt::format("{:.1f},{:.1f} ", area.x(series.x[i]), area.y(series.y[i] + series.spread[i]));
  }
  for (std::size_t i = series.x.size(); i-- > 0;) {
    points +=
        fmt::format("{:.1f},{:.1f} ", area.x(series.x[i]), area.y(series.y[i] - series.spread[i]));
  }
  return fmt::format("<polygon points=\"{}\" style=\"fill:{};fill-opacity:.13\" />", points, color);
}

std::string line(const Series& series, const PlotArea& area, const std::string& color) {
  std::string points;
  std::string circles;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const double x = area.x(series.x[i]);
    const double y = area.y(series.y[i]);
    points += fmt::format("{:.1f},{:.1f} ", x, y);
    if (series.dots || series.x.size() == 1) {
      circles += fmt::format("<circle cx={:.1f} cy={:.1f} r=3.2 style=\"fill:{}\" />", x, y, color);
    }
  }
  return fmt::format(
             "<polyline points=\"{}\" style=\"fill:none;stroke:{};stroke-width:1.8;"
             "stroke-linejoin:round;stroke-linecap:round{}\" />",
             points,
             color,
             series.dots ? ";stroke-dasharray:3 4" : "") +
         circles;
}

// Invisible columns, one a step, that show the values under the pointer.
std::string pointer_columns(const std::vector<Series>& all, const PlotArea& area) {
  std::map<double, std::string> values;
  for (const Series& series : all) {
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      values[series.x[i]] += fmt::format("\n{} {:.5g}", html_escape(series.name), series.y[i]);
    }
  }
  const double width =
      (kChartWidth - kLeft - kRight) / std::max<double>(1.0, static_cast<double>(values.size()));
  std::string out;
  for (const auto& [x, text] : values) {
    out += fmt::format(
        "<rect class=hit x={:.1f} y={:.0f} width={:.1f} height={:.0f}><title>step "
        "{:.6g}{}</title></rect>",
        area.x(x) - width / 2,
        kTop,
        width,
        kChartHeight - kTop - kBottom,
        x,
        text);
  }
  return out;
}

}  // namespace

std::string line_chart(const Chart& chart) {
  std::vector<Series> all;
  CardText text{chart.title, chart.unit, {}};
  for (const Series& series : chart.series) {
    if (!series.x.empty()) {
      all.push_back(thinned(series));
      text.names.push_back(series.name);
    }
  }
  if (all.empty()) {
    return "";
  }
  PlotArea area = area_of(all, chart);
  std::string drawing = axes(area);
  for (std::size_t i = 0; i < all.size(); ++i) {
    drawing += band(all[i], area, series_color(i));
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    drawing += line(all[i], area, series_color(i));
  }
  return chart_card(text, drawing + pointer_columns(all, area), kChartHeight);
}

std::string stacked_chart(const Chart& chart) {
  std::vector<Series> all;
  CardText text{chart.title, chart.unit, {}};
  for (const Series& series : chart.series) {
    all.push_back(thinned(series));
    text.names.push_back(series.name);
  }
  if (all.empty() || all.front().x.empty()) {
    return "";
  }
  Series tops{"", all.front().x, std::vector<double>(all.front().x.size(), 0.0), {}, false};
  for (const Series& series : all) {
    for (std::size_t i = 0; i < series.y.size(); ++i) {
      tops.y[i] += series.y[i];
    }
  }
  PlotArea area = area_of({tops}, chart);
  area.y_low = 0;
  std::string drawing = axes(area);
  std::vector<double> base(tops.y.size(), 0.0);
  const double width = (kChartWidth - kLeft - kRight) / (area.x_high - area.x_low + 1) * 0.82;
  for (std::size_t s = 0; s < all.size(); ++s) {
    for (std::size_t i = 0; i < base.size(); ++i) {
      const double low = area.y(base[i]);
      base[i] += all[s].y[i];
      const double high = area.y(base[i]);
      drawing +=
          fmt::format("<rect x={:.1f} y={:.1f} width={:.1f} height={:.1f} style=\"fill:{}\" />",
                      area.x(all[s].x[i]) - width / 2,
                      high,
                      std::max(width, 0.8),
                      std::max(low - high, 0.0),
                      series_color(s));
    }
  }
  return chart_card(text, drawing + pointer_columns(all, area), kChartHeight);
}

std::string span_chart(const std::vector<TraceSpan>& spans) {
  double start = std::numeric_limits<double>::infinity();
  double end = -start;
  int rows = 0;
  std::map<std::string, std::size_t> colors;
  CardText text{"Spans of the last steps", "seconds since the start", {}};
  const auto places = places_of(spans);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const TraceSpan& span = spans[i];
    start = std::min(start, places[i].start_s);
    end = std::max(end, places[i].end_s);
    rows = std::max(rows, span.depth + 1);
    if (colors.emplace(span.name, colors.size()).second) {
      text.names.push_back(span.name);
    }
  }
  if (!(end > start)) {
    return "";
  }
  constexpr double kRow = 20;
  const double height = kTop + rows * kRow + kBottom;
  const auto x = [&](double time) {
    return kRight + (time - start) / (end - start) * (kChartWidth - 2 * kRight);
  };
  std::string drawing;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const TraceSpan& span = spans[i];
    const double left = x(places[i].start_s);
    drawing += fmt::format(
        "<rect x={:.2f} y={:.1f} width={:.2f} height={:.1f} rx=1.5 style=\"fill:{}\"><title>step "
        "{}: {} {:.3g} s{}</title></rect>",
        left,
        kTop + span.depth * kRow,
        std::max(x(places[i].end_s) - left - 0.4, 0.3),
        kRow - 3,
        series_color(colors.at(span.name)),
        span.step,
        html_escape(span.name),
        span.seconds,
        span.count > 1 ? fmt::format(" in {} parts", span.count) : "");
  }
  for (const double tick : round_ticks(start, end, 6)) {
    if (tick >= start && tick <= end) {
      drawing += fmt::format("<text x={:.1f} y={:.0f} text-anchor=middle>{}</text>",
                             x(tick),
                             height - 7,
                             short_number(tick));
    }
  }
  return chart_card(text, drawing, height);
}

}  // namespace tandem::app
