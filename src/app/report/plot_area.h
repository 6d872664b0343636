// The rectangle of a chart: scales, axes, grid.
#pragma once

#include <string>
#include <vector>

namespace tandem::app {

constexpr double kChartWidth = 400;
constexpr double kChartHeight = 190;
constexpr double kLeft = 46;
constexpr double kRight = 10;
constexpr double kTop = 10;
constexpr double kBottom = 24;

/// From values to places in the drawing.
struct PlotArea {
  double x_low = 0;
  double x_high = 1;
  double y_low = 0;
  double y_high = 1;

  [[nodiscard]] double x(double value) const {
    return kLeft + (value - x_low) / (x_high - x_low) * (kChartWidth - kLeft - kRight);
  }
  [[nodiscard]] double y(double value) const {
    return kTop + (y_high - value) / (y_high - y_low) * (kChartHeight - kTop - kBottom);
  }
};

/// Grid lines and their numbers; the area's y range becomes that of the ticks.
std::string axes(PlotArea& area);

/// "var(--c1)": the colour of the i-th series.
std::string series_color(std::size_t i);

/// The card around a drawing: title, unit, legend of `names`, the svg element.
struct CardText {
  std::string title;
  std::string unit;
  std::vector<std::string> names;
};
std::string chart_card(const CardText& text, const std::string& drawing, double height);

}  // namespace tandem::app
