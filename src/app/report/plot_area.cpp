#include "app/report/plot_area.h"

#include <cmath>

#include <fmt/format.h>

#include "app/report/chart.h"
#include "app/report/html.h"

namespace tandem::app {

std::vector<double> round_ticks(double low, double high, int count) {
  if (!(high > low)) {
    low -= std::abs(low) * 0.1;  // of zeros: from 0 to 1
    high += low == 0.0 ? 1.0 : std::abs(high) * 0.1;
  }
  const double raw = (high - low) / count;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= raw * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  for (double i = first; ticks.empty() || ticks.back() < high - step * 1e-9; ++i) {
    ticks.push_back(i * step);
  }
  return ticks;
}

std::string axes(PlotArea& area) {
  const auto y_ticks = round_ticks(area.y_low, area.y_high, 4);
  area.y_low = y_ticks.front();
  area.y_high = y_ticks.back();
  std::string out;
  for (const double tick : y_ticks) {
    const double y = area.y(tick);
    out += fmt::format("<line class=grid x1={:.0f} x2={:.0f} y1={:.1f} y2={:.1f} />",
                       kLeft,
                       kChartWidth - kRight,
                       y,
                       y);
    out += fmt::format("<text x={:.0f} y={:.1f} text-anchor=end>{}</text>",
                       kLeft - 6,
                       y + 3.5,
                       short_number(tick));
  }
  for (const double tick : round_ticks(area.x_low, area.x_high, 5)) {
    if (tick < area.x_low || tick > area.x_high || tick != std::floor(tick)) {
      continue;
    }
    out += fmt::format("<text x={:.1f} y={:.0f} text-anchor=middle>{}</text>",
                       area.x(tick),
                       kChartHeight - 7,
                       short_number(tick));
  }
  out += fmt::format("<line class=axis x1={:.0f} x2={:.0f} y1={:.1f} y2={:.1f} />",
                     kLeft,
                     kChartWidth - kRight,
                     area.y(area.y_low),
                     area.y(area.y_low));
  return out;
}

std::string series_color(std::size_t i) {
  return fmt::format("var(--c{})", i % 8 + 1);
}

std::string chart_card(const CardText& text, const std::string& drawing, double height) {
  std::string legend;
  for (std::size_t i = 0; i < text.names.size() && text.names.size() > 1; ++i) {
    legend += fmt::format("<span><i style=\"background:{}\"></i>{}</span>",
                          series_color(i),
                          html_escape(text.names[i]));
  }
  return fmt::format(
      "<div class=chart><h3>{}{}</h3>{}<svg viewBox=\"0 0 {:.0f} {:.0f}\" role=img "
      "aria-label=\"{}\">{}</svg></div>\n",
      html_escape(text.title),
      text.unit.empty() ? "" : fmt::format(" <span class=unit>{}</span>", html_escape(text.unit)),
      legend.empty() ? "" : "<div class=legend>" + legend + "</div>",
      kChartWidth,
      height,
      html_escape(text.title),
      drawing);
}

}  // namespace tandem::app
