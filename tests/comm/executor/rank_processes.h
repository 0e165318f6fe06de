// Processes as ranks, for faults that only a process can have: forked by the test, with what each saw in shared memory.
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "comm/bootstrap/unique_id.h"
#include "comm/communicator.h"

namespace sluice::test {

inline double now_seconds() { return std::chrono::duration<double>(RealClock::instance().now()).count(); }

// What a rank reports. Written by the rank, read by the test.
struct Seen {
  std::atomic<int> stage{0};  // raised by the rank as it goes on
  std::atomic<bool> ended{false};
  Code code = Code::ok;
  double at = 0;  // now_seconds() of the error
  char text[1024] = {};

  void note(const Status& status) {
    code = status.code();
    at = now_seconds();
    std::strncpy(text, status.text().c_str(), sizeof(text) - 1);
  }
};

class RankProcesses {
 public:
  using Body = std::function<void(Runtime&, Seen&)>;

  // Call while the process has one thread.
  RankProcesses(int ranks, const RuntimeOptions& options, const Body& body) : pids_(static_cast<std::size_t>(ranks)) {
    void* memory = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    seen_ = static_cast<Seen*>(memory);
    for (int rank = 0; rank < ranks; ++rank) new (seen_ + rank) Seen;
    const UniqueId id = *make_local_unique_id();
    for (int rank = 0; rank < ranks; ++rank) {
      pids_[static_cast<std::size_t>(rank)] = fork();
      if (pids_[static_cast<std::size_t>(rank)] == 0) run_child(id, rank, ranks, options, body);
    }
  }
  ~RankProcesses() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
    for (const pid_t pid : pids_) waitpid(pid, nullptr, 0);
    munmap(seen_, bytes());
  }
  RankProcesses(const RankProcesses&) = delete;
  RankProcesses& operator=(const RankProcesses&) = delete;

  Seen& operator[](int rank) { return seen_[rank]; }
  void signal(int rank, int number) { kill(pids_[static_cast<std::size_t>(rank)], number); }

  // Waits until every rank reached `stage`; false after the time.
  bool all_reach(int stage, double seconds) {
    return wait_for(seconds, [&] {
      for (std::size_t rank = 0; rank < pids_.size(); ++rank)
        if (seen_[rank].stage.load() < stage) return false;
      return true;
    });
  }
  bool ends(int rank, double seconds) {
    return wait_for(seconds, [&] { return seen_[rank].ended.load(); });
  }

 private:
  std::size_t bytes() const { return pids_.size() * sizeof(Seen); }

  template <typename Condition>
  static bool wait_for(double seconds, const Condition& condition) {
    const double until = now_seconds() + seconds;
    while (!condition()) {
      if (now_seconds() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }

  [[noreturn]] void run_child(const UniqueId& id, int rank, int ranks, const RuntimeOptions& options,
                              const Body& body) {
    {
      auto runtime = Runtime::join(id, rank, ranks, options);
      if (runtime.ok())
        body(**runtime, seen_[rank]);
      else
        seen_[rank].note(runtime.status());
      seen_[rank].ended = true;
    }
    _exit(0);
  }

  std::vector<pid_t> pids_;
  Seen* seen_ = nullptr;
};

}  // namespace sluice::test
