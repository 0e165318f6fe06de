// One thread's loop over file descriptors, timers and tasks from other threads (epoll and an eventfd).
//
//   Threads   post(), run_there(), stop() from any; everything else from the loop's own thread, or before run().
//   Removal   a watch or timer that was removed is never called again, not even for events that were already fetched: a
//             number is never given twice.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace sluice {

class EventLoop {
 public:
  using Task = std::function<void()>;
  using Ready = std::function<void(std::uint32_t events)>;  // epoll's events

  // Errors: system, out_of_resource (descriptors).
  static Result<std::unique_ptr<EventLoop>> create();

  // Watches `fd`, which must be open until unwatch(). Returns its number, 0 when the kernel refuses (memory, limits).
  std::uint64_t watch(int fd, std::uint32_t events, Ready ready);
  void change(std::uint64_t watch, int fd, std::uint32_t events);
  void unwatch(std::uint64_t watch, int fd);

  std::uint64_t after(Nanoseconds delay, Task task);
  void cancel(std::uint64_t timer);  // of one that is gone: nothing

  // Called after every round of events: the place to destroy what an event ended.
  void after_each_round(Task sweep) { sweep_ = std::move(sweep); }

  // False: the loop has stopped and will not run it. What was accepted is run.
  bool post(Task task);
  // Runs `task` on the loop's thread and waits for it, unless the loop has stopped. Not from that thread.
  void run_there(const Task& task);
  void run();
  void stop();  // what was posted before is still run

  Nanoseconds now() const { return RealClock::instance().now(); }

 private:
  EventLoop(UniqueFd epoll, UniqueFd wake) : epoll_(std::move(epoll)), wake_(std::move(wake)) {}
  void wake();
  bool stopped();
  int timeout_ms() const;
  void run_timers();
  void run_posted();

  UniqueFd epoll_;
  UniqueFd wake_;
  std::uint64_t next_number_ = 1;
  std::unordered_map<std::uint64_t, std::shared_ptr<Ready>> watches_;  // shared: one may remove itself while it runs
  std::map<std::pair<Nanoseconds, std::uint64_t>, Task> timers_;
  std::unordered_map<std::uint64_t, Nanoseconds> timer_times_;
  Task sweep_;
  std::vector<Task> running_;

  std::mutex mutex_;
  std::vector<Task> posted_;  // GUARDED_BY(mutex_)
  bool stopping_ = false;     // GUARDED_BY(mutex_)
};

}  // namespace sluice
