// Wakes threads that sleep on descriptors. Each sleeper has an alarm of its own: one that all share would go on sounding for who woke,
// until the last one got a core to wake on.
//
//   Threads  any.
#pragma once

#include <mutex>
#include <vector>

#include "base/unique_fd.h"

namespace sluice::detail {

class Alarms {
 public:
  // From here on sound() makes fd() readable, until this goes.
  class Sleeper {
   public:
    explicit Sleeper(Alarms& alarms);
    ~Sleeper();
    Sleeper(const Sleeper&) = delete;
    Sleeper& operator=(const Sleeper&) = delete;
    int fd() const { return fd_.get(); }  // -1: this process has no descriptor left

   private:
    Alarms& alarms_;
    UniqueFd fd_;
  };
  Alarms();
  void sound();

 private:
  std::mutex mutex_;
  std::vector<UniqueFd> spare_;  // GUARDED_BY(mutex_); silent
  std::vector<int> set_;         // GUARDED_BY(mutex_); of those who sleep
};

}  // namespace sluice::detail
