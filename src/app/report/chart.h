// Charts as SVG, drawn by hand: lines over steps, stacked times, spans of a step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/report/run_data.h"

namespace tandem::app {

struct Series {
  std::string name;  // for the legend and the value under the pointer
  std::vector<double> x;
  std::vector<double> y;       // as long as x
  std::vector<double> spread;  // empty, or a band of y - spread to y + spread
  bool dots = false;           // values that are far apart, as of validations
};

struct Chart {
  std::string title;
  std::string unit;  // behind the title
  std::vector<Series> series;
  std::optional<double> lowest;  // of the y axis, where the data may be higher
};

/// Round numbers from at or below `low` to at or above `high`, about `count` of them.
std::vector<double> round_ticks(double low, double high, int count);

/// A card with title, legend and one line a series; long ones are averaged to 400 points. Empty
/// where no series has a value.
std::string line_chart(const Chart& chart);

/// A card with the series on top of each other, one bar a step. All series have the same x.
std::string stacked_chart(const Chart& chart);

/// A card with spans as bars over time, those within others below them. Empty where there are none.
std::string span_chart(const std::vector<TraceSpan>& spans);

}  // namespace tandem::app
