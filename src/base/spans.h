// Where the time of a step goes: named spans within spans, kept in memory and taken once a step.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// One part of a step. A part that repeats within the same outer part is one record, so that a
/// rollout of a thousand forward passes has a handful of them. Seconds on the steady clock, from
/// the recorder's creation.
struct SpanRecord {
  std::string name;
  double start_s = 0;      // of the first
  double end_s = 0;        // of the last
  int depth = 0;           // 0 for the outermost
  double seconds = 0;      // in all, without what lies between
  std::int64_t count = 0;  // how many
};

/// Collects spans. Not thread safe; the thread that runs the steps owns it.
class SpanRecorder {
 public:
  SpanRecorder() : origin_(Clock::now()) {}

  /// Measures from its construction to its destruction. Without a recorder it does nothing: code
  /// that is also used outside of runs takes a pointer.
  class Scope {
   public:
    Scope(SpanRecorder* recorder, std::string_view name);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    SpanRecorder* recorder_;
    std::size_t outer_ = 0;
    std::size_t index_ = 0;
    double start_s_ = 0;
  };

  [[nodiscard]] Scope scope(std::string_view name) { return {this, name}; }

  /// Seconds of all finished spans of that name since the last `take`.
  [[nodiscard]] double seconds(std::string_view name) const;

  /// The spans so far, each before those within it; forgets them. Throws Error inside a scope.
  std::vector<SpanRecord> take();

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Node {
    SpanRecord record;
    std::size_t outer = kNone;  // the node that it is in
  };

  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - origin_).count();
  }
  std::size_t find_or_add(std::string_view name);
  void append_within(std::size_t outer, std::vector<SpanRecord>& records) const;

  Clock::time_point origin_;
  std::vector<Node> nodes_;      // in order of their first start
  std::size_t current_ = kNone;  // the innermost open one
};

}  // namespace tandem
