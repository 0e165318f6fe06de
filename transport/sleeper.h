// How a rank sleeps and is woken, whoever wakes it: the protocol of Transport::prepare_wait() over a Bell.
//
//   Threads  wake() from any; the rest under the owner token.
#pragma once

#include <atomic>

#include "transport/bell.h"

namespace sluice {

class Sleeper {
 public:
  // `bell` is this rank's own; its door and descriptor outlive this.
  explicit Sleeper(Bell bell) : bell_(bell) {}

  bool prepared() const { return prepared_; }

  void prepare() {
    prepared_ = true;
    bell_.door->sleeping.store(1, std::memory_order_relaxed);
    sleep_barrier(bell_);
    if (woken_.exchange(false, std::memory_order_acquire))
      ring_bell(bell_);  // so that it is seen through wait_fd() too
  }
  void cancel() {
    bell_.door->sleeping.store(0, std::memory_order_relaxed);
    woken_.exchange(false, std::memory_order_acquire);
    prepared_ = false;
  }
  void wake() {
    woken_.store(true, std::memory_order_release);
    ring_bell(bell_);
  }

 private:
  Bell bell_;
  bool prepared_ = false;
  std::atomic<bool> woken_{false};  // release by the waker -> acquire by the woken: what the waker posted is seen
};

}  // namespace sluice
