// Processes of one job on this host: forked, waited for, and ended together.
//
//   Ending   the first process that fails decides the exit code, unless one was killed by a signal before the job was ended:
//            that one is named, since the others usually failed because of it. The rest get `grace` to end by themselves
//            (their errors name the lost rank), then SIGTERM, then SIGKILL.
//   Signals  SIGINT, SIGTERM and SIGHUP sent to the caller go on to every process. While waiting, the caller's signals
//            are blocked and taken synchronously: no handler is installed. A child dies with its parent.
//   Threads  call it from the main thread, before any other thread exists: fork copies only the calling one.
#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace sluice::tools {

struct LaunchOptions {
  int processes = 1;
  Nanoseconds grace = std::chrono::seconds(5);
};

struct LaunchOutcome {
  int exit_code = 0;  // the failing process's; 128 + signal for one that was killed
  int failed_process = -1;
  bool killed = false;  // by a signal
  std::string text;     // "process 2 (pid 4711) was killed by signal 9 (Killed)"; empty: all ended with 0
};

inline constexpr int kProcessesMax = 1024;

// Child `index` runs body(index) and exits with its return value. Errors: invalid_argument (processes), system (fork).
Result<LaunchOutcome> run_processes(const LaunchOptions& options, const std::function<int(int index)>& body);

}  // namespace sluice::tools
