// Where the time of a step goes: named spans, kept in memory and taken once a step.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace tandem {

/// One measured stretch of time. Seconds on the steady clock, from the recorder's creation.
struct SpanRecord {
  std::string name;
  double start_s = 0;
  double end_s = 0;
  int depth = 0;  // 0 for the outermost
};

/// Collects spans. Not thread safe; the thread that runs the steps owns it.
class SpanRecorder {
 public:
  SpanRecorder() : origin_(Clock::now()) {}

  /// Measures from its construction to its destruction.
  class Scope {
   public:
    Scope(SpanRecorder& recorder, std::string_view name);
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    ~Scope();

   private:
    SpanRecorder& recorder_;
    std::size_t index_;
  };

  [[nodiscard]] Scope scope(std::string_view name) { return Scope(*this, name); }

  /// Seconds of all finished spans of that name since the last `take`.
  [[nodiscard]] double seconds(std::string_view name) const;

  /// The spans so far, in order of their start; forgets them. Only outside any scope.
  std::vector<SpanRecord> take();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] double now() const {
    return std::chrono::duration<double>(Clock::now() - origin_).count();
  }

  Clock::time_point origin_;
  std::vector<SpanRecord> spans_;
  int depth_ = 0;
};

}  // namespace tandem
