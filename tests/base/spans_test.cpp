#include "base/spans.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem {
namespace {

TEST_CASE("spans come out with the outer one first, whatever the order in which they began") {
  SpanRecorder spans;
  {
    const auto step = spans.scope("step");
    for (int i = 0; i < 2; ++i) {
      { const auto prefill = spans.scope("prefill"); }
      const auto decode = spans.scope("decode");
      if (i == 1) {
        const auto sample = spans.scope("sample");
      }
    }
    const auto train = spans.scope("train");
  }
  const auto records = spans.take();
  REQUIRE(records.size() == 5);
  const char* names[] = {"step", "prefill", "decode", "sample", "train"};
  const int depths[] = {0, 1, 1, 2, 1};
  const int counts[] = {1, 2, 2, 1, 1};
  for (std::size_t i = 0; i < records.size(); ++i) {
    CHECK(records[i].name == names[i]);
    CHECK(records[i].depth == depths[i]);
    CHECK(records[i].count == counts[i]);
    CHECK(records[i].seconds <= records[i].end_s - records[i].start_s + 1e-12);
  }
  CHECK(spans.take().empty());
}

TEST_CASE("a span that repeats is one record from the first start to the last end") {
  SpanRecorder spans;
  for (int i = 0; i < 3; ++i) {
    const auto span = spans.scope("forward");
  }
  const double seconds = spans.seconds("forward");
  const auto records = spans.take();
  REQUIRE(records.size() == 1);
  CHECK(records[0].count == 3);
  CHECK(records[0].seconds == seconds);
  CHECK(records[0].end_s > records[0].start_s);
  CHECK(spans.seconds("forward") == 0);
}

TEST_CASE("the same name within different outer spans stays apart") {
  SpanRecorder spans;
  for (const char* outer : {"rollout", "train"}) {
    const auto span = spans.scope(outer);
    const auto inner = spans.scope("forward");
  }
  CHECK(spans.take().size() == 4);
}

TEST_CASE("spans are not taken while one is open; without a recorder a scope does nothing") {
  SpanRecorder spans;
  const auto span = spans.scope("step");
  CHECK_THROWS_AS(spans.take(), Error);
  const SpanRecorder::Scope nothing(nullptr, "forward");
}

}  // namespace
}  // namespace tandem
