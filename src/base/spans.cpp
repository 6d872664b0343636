#include "base/spans.h"

#include <utility>

namespace tandem {

SpanRecorder::Scope::Scope(SpanRecorder& recorder, std::string_view name)
    : recorder_(recorder), index_(recorder.spans_.size()) {
  recorder_.spans_.push_back({std::string(name), recorder_.now(), -1, recorder_.depth_++});
}

SpanRecorder::Scope::~Scope() {
  recorder_.spans_[index_].end_s = recorder_.now();
  --recorder_.depth_;
}

double SpanRecorder::seconds(std::string_view name) const {
  double sum = 0;
  for (const auto& span : spans_) {
    if (span.name == name && span.end_s >= 0) {
      sum += span.end_s - span.start_s;
    }
  }
  return sum;
}

std::vector<SpanRecord> SpanRecorder::take() {
  return std::exchange(spans_, {});
}

}  // namespace tandem
