#include "tools/launch/processes.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <optional>
#include <vector>

namespace sluice::tools {
namespace {

constexpr Nanoseconds kTermToKill = std::chrono::seconds(2);

struct Child {
  pid_t pid = -1;
  bool ended = false;
};

sigset_t waited_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int one : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, one);
  return set;
}

// Blocks the signals that the parent takes synchronously, for as long as it lives.
class BlockedSignals {
 public:
  BlockedSignals() {
    const sigset_t set = waited_signals();
    sigprocmask(SIG_BLOCK, &set, &before_);
  }
  ~BlockedSignals() { restore(); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;
  void restore() const { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// The next of the waited signals, or 0 after `at_most`.
int next_signal(Nanoseconds at_most) {
  const sigset_t set = waited_signals();
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(at_most);
  const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (at_most - seconds).count()};
  const int got = sigtimedwait(&set, nullptr, &limit);
  return got > 0 ? got : 0;
}

void signal_all(const std::vector<Child>& children, int signal) {
  for (const Child& child : children)
    if (!child.ended) ::kill(child.pid, signal);
}

std::string describe(int index, pid_t pid, int wait_status) {
  std::string text = "process " + std::to_string(index) + " (pid " + std::to_string(pid) + ") ";
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    return text + "was killed by signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
  return text + "ended with exit code " + std::to_string(WEXITSTATUS(wait_status));
}

// Takes up every child that has ended. The failure that explains the others goes into `outcome`: the first one, but rather the first
// that was killed, since a process that dies may be reaped after those who failed because of it. What we ended, or were told to end,
// explains nothing.
int reap(std::vector<Child>& children, LaunchOutcome& outcome, bool ended_by_us) {
  int ended = 0;
  for (std::size_t i = 0; i < children.size(); ++i) {
    Child& child = children[i];
    int wait_status = 0;
    if (child.ended || ::waitpid(child.pid, &wait_status, WNOHANG) != child.pid) continue;
    child.ended = true;
    ++ended;
    const bool killed = WIFSIGNALED(wait_status);
    const int code = killed ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    const bool explained = outcome.exit_code != 0 && (outcome.killed || !killed);
    if (code == 0 || ended_by_us || explained) continue;
    outcome = {code, static_cast<int>(i), killed, describe(static_cast<int>(i), child.pid, wait_status)};
  }
  return ended;
}

// How far a job that must end has been pushed.
struct Ending {
  std::optional<Nanoseconds> next;  // when the next signal is due
  int signal = SIGTERM;             // the next signal
  bool begun() const { return signal != SIGTERM; }
};

void push(Ending& ending, const std::vector<Child>& children, Nanoseconds now) {
  if (!ending.next || now < *ending.next) return;
  signal_all(children, ending.signal);
  ending.signal = SIGKILL;
  ending.next = now + kTermToKill;
}

LaunchOutcome wait_for(std::vector<Child>& children, Nanoseconds grace) {
  LaunchOutcome outcome;
  const Clock& clock = RealClock::instance();
  Ending ending;
  std::size_t left = children.size();
  bool told = false;  // by a signal to end
  for (;;) {
    left -= static_cast<std::size_t>(reap(children, outcome, told || ending.begun()));
    if (left == 0) return outcome;
    const Nanoseconds now = clock.now();
    if (outcome.exit_code != 0 && !ending.next) ending.next = now + grace;
    push(ending, children, now);
    const Nanoseconds patience = ending.next ? *ending.next - now : Nanoseconds(std::chrono::seconds(1));
    const int signal = next_signal(std::max(patience, Nanoseconds(1'000'000)));
    if (signal == 0 || signal == SIGCHLD) continue;
    signal_all(children, signal);
    told = true;
    if (outcome.exit_code == 0) outcome = {128 + signal, -1, true, std::string("ended by ") + ::strsignal(signal)};
  }
}

[[noreturn]] void run_child(const std::function<int(int)>& body, int index, pid_t parent,
                            const BlockedSignals& blocked) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) std::_Exit(128 + SIGKILL);  // the parent ended before the line above
  blocked.restore();
  std::exit(body(index));  // NOLINT(concurrency-mt-unsafe): the child has one thread left
}

}  // namespace

Result<LaunchOutcome> run_processes(const LaunchOptions& options, const std::function<int(int index)>& body) {
  if (options.processes < 1 || options.processes > kProcessesMax)
    return Error{Code::invalid_argument, "the number of processes is " + std::to_string(options.processes) +
                                             ", but must be between 1 and " + std::to_string(kProcessesMax)};
  std::fflush(nullptr);  // else every child would print what is buffered here
  const BlockedSignals blocked;
  const pid_t parent = ::getpid();
  std::vector<Child> children;
  for (int index = 0; index < options.processes; ++index) {
    const pid_t pid = ::fork();
    if (pid == 0) run_child(body, index, parent, blocked);
    if (pid < 0) {
      const Error error = system_error("fork of process " + std::to_string(index), errno);
      signal_all(children, SIGKILL);
      for (const Child& child : children) ::waitpid(child.pid, nullptr, 0);
      return error;
    }
    children.push_back({.pid = pid});
  }
  return wait_for(children, options.grace);
}

}  // namespace sluice::tools
