#include "trainer/schedule.h"

#include <cmath>
#include <string>

#include <doctest/doctest.h>

#include "base/error.h"
#include "trainer/golden.h"

namespace tandem::trainer {
namespace {

TEST_CASE("learning rates equal those of transformers, steps past the end included") {
  const auto golden = test::golden_json("optim/schedules.json");
  int compared = 0;
  for (const auto& one : golden.at("schedules")) {
    const std::string name = one.at("name");
    if (name != "constant" && name != "constant_with_warmup" && name != "linear" &&
        name != "cosine") {
      continue;  // kinds that do not exist here yet
    }
    CAPTURE(name);
    const ScheduleConfig config = {
        .kind = schedule_kind_from(name == "constant_with_warmup" ? "constant" : name),
        .warmup_steps = one.at("num_warmup_steps"),
        .total_steps = one.at("num_training_steps"),
        .cosine_cycles = one.at("kwargs").value("num_cycles", 0.5)};
    CHECK_NOTHROW(check_schedule(config));
    const double base = one.at("base_lr");
    std::int64_t step = 0;
    for (const double want : one.at("lr")) {
      CAPTURE(step);
      CHECK(std::abs(learning_rate(config, base, step++) - want) <= 1e-12 * base);
    }
    ++compared;
  }
  CHECK(compared == 6);
}

TEST_CASE("schedules that leave no step after the warm-up are refused") {
  CHECK_THROWS_AS(
      check_schedule({.kind = ScheduleKind::kLinear, .warmup_steps = 5, .total_steps = 5}),
      UserError);
  CHECK_THROWS_AS(check_schedule({.warmup_steps = -1}), UserError);
  CHECK_NOTHROW(check_schedule({.warmup_steps = 5}));
  CHECK_THROWS_WITH_AS(
      schedule_kind_from("cosin"), doctest::Contains("constant, linear, cosine"), UserError);
  CHECK(name_of(schedule_kind_from("cosine")) == "cosine");
}

}  // namespace
}  // namespace tandem::trainer
