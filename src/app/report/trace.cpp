#include "app/report/trace.h"

#include <algorithm>
#include <map>

#include "app/jsonl.h"

namespace tandem::app {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// The index of the span that each one is in, or kNone: the last one before it that is less deep.
std::vector<std::size_t> outer_spans(std::span<const TraceSpan> spans) {
  std::vector<std::size_t> outer;
  std::vector<std::size_t> open;  // one a depth
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const auto depth = static_cast<std::size_t>(std::max(spans[i].depth, 0));
    open.resize(std::min(open.size(), depth));
    outer.push_back(open.empty() ? kNone : open.back());
    open.push_back(i);
  }
  return outer;
}

// Of a rank. A resumed run counts from zero again: its spans are moved behind the earlier ones.
struct Clock {
  double offset = 0;
  double last_end = 0;
};

struct Node {
  PartOfStep part;
  std::size_t outer = kNone;
};

std::size_t find_or_add(std::vector<Node>& nodes, const std::string& name, std::size_t outer) {
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].outer == outer && nodes[i].part.name == name) {
      return i;
    }
  }
  nodes.push_back({{name, 0, 0, 0}, outer});
  return nodes.size() - 1;
}

// Appends what is within `outer`, and what of it no part covers as "other".
void append_within(const std::vector<Node>& nodes,
                   std::size_t outer,
                   int depth,
                   std::vector<PartOfStep>& parts) {
  double covered = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].outer != outer) {
      continue;
    }
    covered += nodes[i].part.seconds;
    const bool is_step = outer == kNone && nodes[i].part.name == "step";
    if (!is_step) {
      parts.push_back(nodes[i].part);
      parts.back().depth = depth;
    }
    append_within(nodes, i, is_step ? depth : depth + 1, parts);
  }
  if (outer != kNone && covered > 0 && nodes[outer].part.seconds > covered) {
    parts.push_back({"other", depth, nodes[outer].part.seconds - covered, 0});
  }
}

std::string event_json(const TraceSpan& span, const SpanPlace& place) {
  JsonObject facts;
  facts.add("step", span.step).add("count", span.count).add("seconds", span.seconds);
  JsonObject event;
  event.add("name", span.name)
      .add("cat", "tandem")
      .add("ph", "X")
      .add("ts", place.start_s * 1e6)
      .add("dur", (place.end_s - place.start_s) * 1e6)
      .add("pid", span.rank)
      .add("tid", 0)
      .add_json("args", facts.str());
  return event.str();
}

std::string process_name_json(std::int64_t rank, const std::string& name) {
  JsonObject facts;
  facts.add("name", name + ", rank " + std::to_string(rank));
  JsonObject event;
  event.add("name", "process_name").add("ph", "M").add("pid", rank).add_json("args", facts.str());
  return event.str();
}

}  // namespace

std::vector<SpanPlace> places_of(std::span<const TraceSpan> spans) {
  const auto outer = outer_spans(spans);
  std::vector<SpanPlace> places;
  std::vector<double> free_from;  // within each span: where the next one may begin
  std::map<std::int64_t, Clock> clocks;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const TraceSpan& span = spans[i];
    Clock& clock = clocks[span.rank];
    if (outer[i] == kNone) {
      clock.offset = std::max(clock.offset, clock.last_end - span.start_s);
      clock.last_end = span.end_s + clock.offset;
    }
    SpanPlace place = {span.start_s + clock.offset, span.end_s + clock.offset};
    if (outer[i] != kNone) {
      const std::size_t in = outer[i];
      const bool moved = spans[in].count > 1;
      place.start_s = moved ? free_from[in] : std::max(place.start_s, free_from[in]);
      place.start_s = std::min(place.start_s, places[in].end_s);
      place.end_s = std::min(place.start_s + span.seconds, places[in].end_s);
      free_from[in] = place.end_s;
    }
    places.push_back(place);
    free_from.push_back(place.start_s);
  }
  return places;
}

std::vector<TraceSpan> last_steps(std::span<const TraceSpan> spans, std::int64_t count) {
  std::int64_t last = 0;
  for (const TraceSpan& span : spans) {
    last = std::max(last, span.step);
  }
  std::vector<TraceSpan> some;
  std::copy_if(spans.begin(), spans.end(), std::back_inserter(some), [&](const TraceSpan& span) {
    return span.step > last - count;
  });
  return some;
}

std::vector<PartOfStep> parts_of_steps(std::span<const TraceSpan> spans) {
  const auto outer = outer_spans(spans);
  std::vector<Node> nodes;
  std::vector<std::size_t> node_of;
  double total = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const std::size_t in = outer[i] == kNone ? kNone : node_of[outer[i]];
    node_of.push_back(find_or_add(nodes, spans[i].name, in));
    nodes[node_of.back()].part.seconds += spans[i].seconds;
    total += outer[i] == kNone ? spans[i].seconds : 0;
  }
  std::vector<PartOfStep> parts;
  append_within(nodes, kNone, 0, parts);
  for (PartOfStep& part : parts) {
    part.share = total > 0 ? part.seconds / total : 0;
  }
  return parts;
}

std::string chrome_trace(const std::string& run_name, std::span<const TraceSpan> spans) {
  const auto places = places_of(spans);
  std::vector<std::int64_t> ranks;
  std::string events;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (std::find(ranks.begin(), ranks.end(), spans[i].rank) == ranks.end()) {
      ranks.push_back(spans[i].rank);
      events += (events.empty() ? "\n" : ",\n") + process_name_json(ranks.back(), run_name);
    }
    events += ",\n" + event_json(spans[i], places[i]);
  }
  return "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [" + events + "\n]}\n";
}

}  // namespace tandem::app
