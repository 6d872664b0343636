#include "app/interrupt.h"

#include <atomic>
#include <csignal>
#include <memory>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <signal.h>

namespace tandem::app {
namespace {

std::atomic<int> noted{0};

// Asio's handler would make blocking calls of the whole process fail with EINTR.
void restart_calls_after(int number) {
  struct sigaction action {};
  ::sigaction(number, nullptr, &action);
  action.sa_flags |= SA_RESTART;
  ::sigaction(number, &action, nullptr);
}

// Waits on a thread of its own for one signal.
class SignalWatch {
 public:
  SignalWatch() {
    restart_calls_after(SIGINT);
    restart_calls_after(SIGTERM);
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (!error) {
        noted = number;
        signals_.clear();  // the next one does what it does by default: it ends the process
      }
    });
    thread_ = std::thread([this] { context_.run(); });
  }
  ~SignalWatch() {
    context_.stop();
    thread_.join();
  }
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

 private:
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_{context_, SIGINT, SIGTERM};
  std::thread thread_;
};

std::unique_ptr<SignalWatch> watch;

}  // namespace

void watch_for_signals() {
  watch.reset();
  watch = std::make_unique<SignalWatch>();
}

int noted_signal() {
  return noted;
}

void forget_signal() {
  noted = 0;
}

}  // namespace tandem::app
