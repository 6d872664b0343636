#include "app/report/trace.h"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

namespace tandem::app {
namespace {

// A step of ten seconds: a rollout in many parts, a training, and a second that nothing covers.
std::vector<TraceSpan> step_spans(std::int64_t step, double start) {
  return {{step, 0, "step", start, start + 10, 0, 10, 1},
          {step, 0, "rollout", start, start + 6, 1, 6, 1},
          {step, 0, "prefill", start, start + 1, 2, 1, 1},
          {step, 0, "decode", start + 1, start + 6, 2, 4, 50},
          {step, 0, "forward", start + 1, start + 5.9, 3, 3, 50},
          {step, 0, "sample", start + 1.1, start + 6, 3, 0.5, 50},
          {step, 0, "train", start + 6, start + 9, 1, 3, 1},
          {step, 0, "optimizer", start + 8, start + 8.5, 2, 0.5, 1}};
}

TEST_CASE("spans that stand for repeats are drawn one after another within the outer one") {
  const auto spans = step_spans(1, 100);
  const auto places = places_of(spans);
  CHECK(places[3].start_s == 101);
  CHECK(places[3].end_s == 105);
  CHECK(places[4].start_s == 101);
  CHECK(places[4].end_s == 104);
  CHECK(places[5].start_s == 104);
  CHECK(places[5].end_s == 104.5);
  CHECK(places[7].start_s == 108);
  for (std::size_t i = 1; i < places.size(); ++i) {
    CHECK(places[i].start_s >= places[0].start_s);
    CHECK(places[i].end_s <= places[0].end_s);
  }
}

TEST_CASE("the spans of a resumed run, whose clock began anew, follow the earlier ones") {
  auto spans = step_spans(1, 100);
  for (const auto& span : step_spans(2, 3)) {
    spans.push_back(span);
  }
  const auto places = places_of(spans);
  CHECK(places[8].start_s == doctest::Approx(110));
  CHECK(places[14].end_s == doctest::Approx(119));
}

TEST_CASE("the parts of all steps add up, what no part covers is other") {
  auto spans = step_spans(1, 0);
  for (const auto& span : step_spans(2, 10)) {
    spans.push_back(span);
  }
  spans.push_back({2, 0, "checkpoint", 20, 30, 0, 10, 1});
  const auto parts = parts_of_steps(spans);
  const std::vector<std::string> names = {"rollout",
                                          "prefill",
                                          "decode",
                                          "forward",
                                          "sample",
                                          "other",
                                          "other",
                                          "train",
                                          "optimizer",
                                          "other",
                                          "other",
                                          "checkpoint"};
  REQUIRE(parts.size() == names.size());
  double sum = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    CHECK(parts[i].name == names[i]);
    sum += parts[i].depth == 0 ? parts[i].share : 0;
  }
  CHECK(sum == doctest::Approx(1));
  CHECK(parts[0].seconds == 12);
  CHECK(parts[0].share == doctest::Approx(0.4));
  CHECK(parts[5].depth == 2);   // of decode
  CHECK(parts[10].depth == 0);  // of the steps
  CHECK(parts[10].seconds == doctest::Approx(2));
  CHECK(parts_of_steps({}).empty());
}

TEST_CASE("the last steps are those with the highest numbers") {
  auto spans = step_spans(1, 0);
  for (const auto& span : step_spans(2, 10)) {
    spans.push_back(span);
  }
  CHECK(last_steps(spans, 1).size() == 8);
  CHECK(last_steps(spans, 1).front().step == 2);
  CHECK(last_steps(spans, 5).size() == 16);
}

TEST_CASE("the Chrome trace is one JSON object of complete events that nest, a process a rank") {
  auto spans = step_spans(7, 0);
  spans.push_back({7, 1, "step", 20, 21, 0, 1, 1});
  const auto trace = nlohmann::json::parse(chrome_trace("a \"run\"", spans));
  const auto& events = trace.at("traceEvents");
  std::vector<nlohmann::json> complete;
  int processes = 0;
  for (const auto& event : events) {
    if (event.at("ph") == "X") {
      complete.push_back(event);
    } else {
      CHECK(event.at("ph") == "M");
      CHECK(event.at("name") == "process_name");
      ++processes;
    }
  }
  REQUIRE(complete.size() == spans.size());
  CHECK(processes == 2);
  CHECK(complete.back().at("pid") == 1);
  CHECK(complete[3].at("name") == "decode");
  CHECK(complete[3].at("ts") == doctest::Approx(1e6));
  CHECK(complete[3].at("dur") == doctest::Approx(4e6));
  CHECK(complete[3].at("args").at("count") == 50);
  CHECK(complete[3].at("args").at("step") == 7);
  CHECK(nlohmann::json::parse(chrome_trace("empty", {})).at("traceEvents").empty());
}

}  // namespace
}  // namespace tandem::app
