#include "app/console.h"

#include <csignal>

#include <doctest/doctest.h>

#include "app/interrupt.h"

namespace tandem::app {
namespace {

TEST_CASE("a bar fills from the left and never past its end") {
  CHECK(bar_text(0, 10, 5) == "[.....]");
  CHECK(bar_text(4, 10, 5) == "[##...]");
  CHECK(bar_text(10, 10, 5) == "[#####]");
  CHECK(bar_text(20, 10, 5) == "[#####]");
  CHECK(bar_text(0, 0, 5) == "[.....]");
}

TEST_CASE("durations read as clocks do") {
  CHECK(duration_text(-1) == "0:00");
  CHECK(duration_text(9.6) == "0:10");
  CHECK(duration_text(125) == "2:05");
  CHECK(duration_text(3725) == "1:02:05");
}

TEST_CASE("a first signal is noted, a second would end the process") {
  watch_for_signals();
  CHECK(noted_signal() == 0);
  std::raise(SIGTERM);
  CHECK(noted_signal() == SIGTERM);
  struct sigaction now {};
  ::sigaction(SIGINT, nullptr, &now);
  const bool is_default = now.sa_handler == SIG_DFL;
  CHECK(is_default);
  forget_signal();
  CHECK(noted_signal() == 0);
}

}  // namespace
}  // namespace tandem::app
