#include "app/interrupt.h"

#include <csignal>

#include <signal.h>

namespace tandem::app {
namespace {

volatile std::sig_atomic_t noted = 0;

extern "C" void note_signal(int number) {
  noted = number;
  struct sigaction fall_back {};
  fall_back.sa_handler = SIG_DFL;
  ::sigaction(SIGINT, &fall_back, nullptr);
  ::sigaction(SIGTERM, &fall_back, nullptr);
}

}  // namespace

void watch_for_signals() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int noted_signal() {
  return noted;
}

void forget_signal() {
  noted = 0;
}

}  // namespace tandem::app
