#include "base/spans.h"

#include "base/error.h"

namespace tandem {

SpanRecorder::Scope::Scope(SpanRecorder* recorder, std::string_view name) : recorder_(recorder) {
  if (recorder_ != nullptr) {
    outer_ = recorder_->current_;
    index_ = recorder_->find_or_add(name);
    recorder_->current_ = index_;
    start_s_ = recorder_->now();
  }
}

SpanRecorder::Scope::~Scope() {
  if (recorder_ != nullptr) {
    SpanRecord& record = recorder_->nodes_[index_].record;
    record.end_s = recorder_->now();
    record.start_s = record.count == 0 ? start_s_ : record.start_s;
    record.seconds += record.end_s - start_s_;
    ++record.count;
    recorder_->current_ = outer_;
  }
}

std::size_t SpanRecorder::find_or_add(std::string_view name) {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].outer == current_ && nodes_[i].record.name == name) {
      return i;
    }
  }
  Node node;
  node.record.name = name;
  node.record.depth = current_ == kNone ? 0 : nodes_[current_].record.depth + 1;
  node.outer = current_;
  nodes_.push_back(std::move(node));
  return nodes_.size() - 1;
}

double SpanRecorder::seconds(std::string_view name) const {
  double sum = 0;
  for (const auto& node : nodes_) {
    sum += node.record.name == name ? node.record.seconds : 0;
  }
  return sum;
}

void SpanRecorder::append_within(std::size_t outer, std::vector<SpanRecord>& records) const {
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].outer == outer) {
      records.push_back(nodes_[i].record);
      append_within(i, records);
    }
  }
}

std::vector<SpanRecord> SpanRecorder::take() {
  TANDEM_CHECK(
      current_ == kNone, "spans are taken while '{}' is open", nodes_[current_].record.name);
  std::vector<SpanRecord> records;
  append_within(kNone, records);
  nodes_.clear();
  return records;
}

}  // namespace tandem
