#include "app/console.h"

#include <csignal>
#include <thread>

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

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

// Signals are noted by a thread: waits until it has seen one.
int await_signal() {
  while (noted_signal() == 0) {
    std::this_thread::yield();
  }
  return noted_signal();
}

bool ends_the_process(int number) {
  struct sigaction now {};
  for (;;) {  // the default comes back just after the note
    ::sigaction(number, nullptr, &now);
    if (now.sa_handler == SIG_DFL) {
      return true;
    }
    std::this_thread::yield();
  }
}

TEST_CASE("a first signal is noted, a second would end the process; watching can begin anew") {
  for (const int number : {SIGTERM, SIGINT}) {
    watch_for_signals();
    CHECK(noted_signal() == 0);
    std::raise(number);
    CHECK(await_signal() == number);
    CHECK(ends_the_process(SIGINT));
    CHECK(ends_the_process(SIGTERM));
    forget_signal();
    CHECK(noted_signal() == 0);
  }
}

TEST_CASE("a second signal ends the process at once") {
  const pid_t child = ::fork();
  if (child == 0) {
    watch_for_signals();
    std::raise(SIGINT);
    await_signal();
    ends_the_process(SIGINT);
    std::raise(SIGINT);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  const bool by_signal = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
  CHECK(by_signal);
}

}  // namespace
}  // namespace tandem::app
