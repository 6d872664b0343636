#include "rewards/process/spawner_server.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <set>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "rewards/process/spawner_messages.h"

namespace tandem::rewards {
namespace {

constexpr int kParentCheckMs = 500;  // how late a parent's end without a closed socket is noticed
constexpr int kGraceMs = 1000;

// Closes what the trainer had open, so that no file or socket of it lives on in here.
void close_all_but(int keep) {
  std::vector<int> open;
  if (DIR* folder = ::opendir("/proc/self/fd")) {
    while (const dirent* entry = ::readdir(folder)) {
      const int fd = std::atoi(entry->d_name);
      if (fd > STDERR_FILENO && fd != keep && fd != ::dirfd(folder)) {
        open.push_back(fd);
      }
    }
    ::closedir(folder);
  }
  for (const int fd : open) {
    ::close(fd);
  }
}

// Input from nowhere; output to standard error, since standard output belongs to results.
void redirect_standard_streams() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null >= 0) {
    ::dup2(null, STDIN_FILENO);
    ::close(null);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  ::setlinebuf(stdout);  // what a reward printed before its crash is worth seeing
}

void reset_signals() {
  // Handlers of the trainer, its crash reporter among them, have no business in here.
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    if (signal != SIGKILL && signal != SIGSTOP) {
      std::signal(signal, SIG_DFL);
    }
  }
  // Ctrl-C and terminal stops are the trainer's business, even where it shares our group.
  for (const int signal : {SIGINT, SIGQUIT, SIGTTOU, SIGTTIN}) {
    std::signal(signal, SIG_IGN);
  }
}

void set_child_signal_blocked(bool blocked) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  ::sigprocmask(blocked ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
}

class Server {
 public:
  Server(int control, const Spawner::Body& body) : control_(control), body_(body) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() {
    for (const pid_t pid : std::set<pid_t>(workers_)) {
      stop(pid, /*grace=*/false);
    }
  }

  // False when the other end is gone.
  bool serve_one() {
    SpawnerRequest request;
    ssize_t received = 0;
    do {
      received = ::recv(control_, &request, sizeof(request), 0);
    } while (received < 0 && errno == EINTR);
    if (received != static_cast<ssize_t>(sizeof(request))) {
      return false;
    }
    if (request.command == SpawnerCommand::kStart) {
      return start(request.argument);
    }
    const int status = stop(request.argument, request.command == SpawnerCommand::kStopWithGrace);
    return send_reply(control_, {status}, -1);
  }

 private:
  bool start(int index) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      return send_reply(control_, {-errno}, -1);
    }
    FileDescriptor ours(ends[0]);
    FileDescriptor theirs(ends[1]);
    const pid_t pid = ::fork();
    if (pid < 0) {
      return send_reply(control_, {-errno}, -1);
    }
    if (pid == 0) {
      ours = FileDescriptor();
      ::close(control_);
      leave_process(run_worker(index, theirs.get()));
    }
    ::setpgid(pid, pid);  // here and in the worker, so that it holds whoever comes first
    workers_.insert(pid);
    return send_reply(control_, {pid}, ours.get());
  }

  int run_worker(int index, int socket) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_child_signal_blocked(false);
    // Handlers run last in, first out. A reward that calls exit() gets those of its own library,
    // and not those of the trainer, which would delete the trainer's temporary files.
    ::on_exit([](int status, void*) { leave_process(status); }, nullptr);
    try {
      return body_(index, socket);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "reward worker: %s\n", error.what());
    }
    return 1;
  }

  int stop(pid_t pid, bool grace) {
    if (workers_.erase(pid) == 0) {
      return 0;
    }
    int status = 0;
    const bool ended = grace && wait_within_grace(pid, status);
    ::kill(-pid, SIGKILL);  // also what the worker started
    if (!ended) {
      ::kill(pid, SIGKILL);
      while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
    }
    return status;
  }

  static bool wait_within_grace(pid_t pid, int& status) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    const timespec grace{kGraceMs / 1000, (kGraceMs % 1000) * 1'000'000};
    while (::waitpid(pid, &status, WNOHANG) == 0) {
      if (::sigtimedwait(&set, nullptr, &grace) < 0 && errno == EAGAIN) {
        return ::waitpid(pid, &status, WNOHANG) == pid;
      }
    }
    return true;
  }

  int control_;
  const Spawner::Body& body_;
  std::set<pid_t> workers_;
};

}  // namespace

int serve_spawner(int control, pid_t parent, const Spawner::Body& body) {
  ::setpgid(0, 0);
  close_all_but(control);
  redirect_standard_streams();
  reset_signals();
  set_child_signal_blocked(true);  // sigtimedwait takes it
  Server server(control, body);
  // A closed socket tells of the parent's end, unless a process that it forked still holds it.
  for (;;) {
    pollfd entry{control, POLLIN, 0};
    const int ready = ::poll(&entry, 1, kParentCheckMs);
    if (ready > 0 && !server.serve_one()) {
      return 0;
    }
    if (ready <= 0 && ::getppid() != parent) {
      return 0;
    }
  }
}

void leave_process(int status) {
  std::fflush(nullptr);
  ::_exit(status);
}

}  // namespace tandem::rewards
