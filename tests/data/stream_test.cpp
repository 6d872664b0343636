#include "data/stream.h"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

#include "base/error.h"

namespace tandem::data {
namespace {

using Rows = std::vector<std::int64_t>;

StreamSource source(std::int64_t num_rows, double weight = 1.0, std::uint64_t fingerprint = 9) {
  return {"f.jsonl", num_rows, weight, fingerprint};
}

Rows rows_of(const std::vector<Draw>& draws) {
  Rows rows;
  for (const Draw& draw : draws) {
    rows.push_back(static_cast<std::int64_t>(draw.source) * 1000 + draw.row);
  }
  return rows;
}

Rows take(DrawStream& stream, int steps) {
  Rows rows;
  for (int i = 0; i < steps; ++i) {
    const Rows step = rows_of(stream.next_step());
    rows.insert(rows.end(), step.begin(), step.end());
  }
  return rows;
}

TEST_CASE("each epoch is a permutation, another one each time, and by the seed alone") {
  DrawStream stream({source(10)}, {.seed = 3, .rows_per_step = 5});
  const Rows first = take(stream, 2);
  const Rows second = take(stream, 2);
  CHECK(std::set<std::int64_t>(first.begin(), first.end()).size() == 10);
  CHECK(std::set<std::int64_t>(second.begin(), second.end()).size() == 10);
  CHECK(first != second);
  DrawStream same({source(10)}, {.seed = 3, .rows_per_step = 5});
  CHECK(take(same, 2) == first);
  DrawStream other({source(10)}, {.seed = 4, .rows_per_step = 5});
  CHECK(take(other, 2) != first);
}

TEST_CASE("without shuffling rows come in the file's order") {
  DrawStream stream({source(3)}, {.rows_per_step = 2, .shuffle = false});
  CHECK(take(stream, 3) == Rows{0, 1, 2, 0, 1, 2});
}

TEST_CASE("10 rows in steps of 4: wrap goes on, drop leaves 2 out, short makes a step of 2") {
  DrawStream wrap({source(10)}, {.rows_per_step = 4, .shuffle = false});
  CHECK(rows_of(wrap.next_step()).size() == 4);
  CHECK(rows_of(wrap.next_step()).size() == 4);
  CHECK(rows_of(wrap.next_step()) == Rows{8, 9, 0, 1});
  CHECK(wrap.epoch() == doctest::Approx(1.2));
  CHECK(wrap.steps_for_epochs(1) == 3);
  CHECK(wrap.steps_for_epochs(2) == 5);

  DrawStream drop({source(10)},
                  {.rows_per_step = 4, .last_batch = LastBatch::kDrop, .shuffle = false});
  CHECK(take(drop, 3) == Rows{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(drop.steps_for_epochs(2) == 4);

  DrawStream brief({source(10)},
                   {.rows_per_step = 4, .last_batch = LastBatch::kShort, .shuffle = false});
  CHECK(take(brief, 2).size() == 8);
  CHECK(rows_of(brief.next_step()) == Rows{8, 9});
  CHECK(rows_of(brief.next_step()) == Rows{0, 1, 2, 3});
  CHECK(brief.steps_for_epochs(2) == 6);
}

TEST_CASE("fewer rows than one step is an error with the numbers") {
  try {
    DrawStream stream({source(5)}, {.rows_per_step = 8});
    FAIL("no error");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) ==
          "f.jsonl: 5 rows are left after filtering, one step takes 8; give more data or make the "
          "step smaller");
  }
  CHECK_NOTHROW(DrawStream({source(5)}, {.rows_per_step = 5}));
}

TEST_CASE("draws are numbered through, so that one row drawn twice gives two groups") {
  DrawStream stream({source(2)}, {.rows_per_step = 2});
  std::set<std::int64_t> draws;
  for (int i = 0; i < 3; ++i) {
    for (const Draw& draw : stream.next_step()) {
      draws.insert(draw.draw);
      CHECK(draw.epoch == draw.draw / 2);
    }
  }
  CHECK(draws == std::set<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("several files are mixed by weight, each through its own epochs") {
  DrawStream stream({source(50, 3.0), source(50, 1.0)}, {.seed = 1, .rows_per_step = 100});
  std::int64_t from_first = 0;
  std::set<std::int64_t> first_epoch;
  for (int i = 0; i < 40; ++i) {
    for (const Draw& draw : stream.next_step()) {
      from_first += draw.source == 0 ? 1 : 0;
      if (draw.source == 1 && draw.epoch == 0) {
        CHECK(first_epoch.insert(draw.row).second);
      }
    }
  }
  // 4000 draws at 3/4: standard deviation 27.
  CHECK(from_first > 3000 - 140);
  CHECK(from_first < 3000 + 140);
  CHECK(first_epoch.size() == 50);
}

TEST_CASE("saved and restored at any step, also at an epoch's end, the stream is the same") {
  for (const auto& sources : {std::vector{source(7)}, std::vector{source(7), source(5, 2.0)}}) {
    const StreamConfig config{.seed = 5, .rows_per_step = 3};
    DrawStream whole(sources, config);
    for (int step = 0; step < 9; ++step) {
      CHECK(whole.state().size() < 1024);
      DrawStream resumed(sources, config);
      resumed.restore(whole.state());
      CHECK(resumed.num_draws() == whole.num_draws());
      const Rows next = rows_of(whole.next_step());
      CHECK(rows_of(resumed.next_step()) == next);
      CHECK(resumed.state() == whole.state());
    }
  }
}

TEST_CASE("changed data, seed or files refuse the state") {
  DrawStream stream({source(7)}, {.seed = 5, .rows_per_step = 3});
  const std::string state = stream.state();
  DrawStream changed({source(8, 1.0, 10)}, {.seed = 5, .rows_per_step = 3});
  CHECK_THROWS_AS(changed.restore(state), UserError);
  DrawStream seeded({source(7)}, {.seed = 6, .rows_per_step = 3});
  CHECK_THROWS_AS(seeded.restore(state), UserError);
  DrawStream more({source(7), source(7)}, {.seed = 5, .rows_per_step = 3});
  CHECK_THROWS_AS(more.restore(state), UserError);
  CHECK_THROWS_AS(stream.restore("{"), UserError);
  CHECK_THROWS_AS(stream.restore("{}"), UserError);
}

TEST_CASE("the fingerprint sees an added and a changed row") {
  PromptSource a;
  a.prompts.resize(2);
  a.prompts[0].ids = {1, 2};
  a.prompts[1].ids = {3};
  PromptSource b = a;
  b.prompts[1].ids = {4};
  PromptSource c = a;
  c.prompts.resize(3);
  PromptSource d = a;
  d.prompts[0].ids = {1};
  d.prompts[1].ids = {2, 3};
  const auto mark = [](const PromptSource& s) { return stream_source(s, 1.0).fingerprint; };
  CHECK(mark(a) == mark(PromptSource(a)));
  CHECK(mark(a) != mark(b));
  CHECK(mark(a) != mark(c));
  CHECK(mark(a) != mark(d));
}

}  // namespace
}  // namespace tandem::data
